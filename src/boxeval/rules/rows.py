"""Rows of the outcomes table, as the rules give them."""

from __future__ import annotations

from boxeval.rules.endings import one_line
from boxeval.rules.turns import unfinished
from boxeval.spec.outcome import Execution, FailureClass, Grading, Outcome, TaskState, VerdictClass, Weight
from boxeval.spec.plan import PlannedTask
from boxeval.spec.trial import Observations


def failed(
    task: PlannedTask,
    seen: Observations,
    failure: FailureClass,
    detail: str,
    kind: VerdictClass = VerdictClass.ASSERTION,
) -> Outcome:
    """A scored failure of a candidate whose turn is graded."""
    turn = unfinished(task, seen)
    return Outcome(
        execution=Execution.FAILED if turn else Execution.COMPLETED,
        grading=Grading.COMPLETED,
        task=TaskState.FAILED,
        failure_class=failure,
        verdict_class=kind,
        weight=Weight.SCORED,
        limit=turn.limit if turn else None,
        detail=one_line(f"{detail}; the turn: {turn.detail}" if turn else detail),
    )


def void(
    failure: FailureClass,
    detail: str,
    execution: Execution = Execution.FAILED,
    grading: Grading = Grading.NOT_REQUESTED,
    limit: str | None = None,
) -> Outcome:
    """A trial without a verdict: nothing that the candidate did decides it."""
    return Outcome(
        execution=execution,
        grading=grading,
        task=TaskState.NOT_ASSESSED,
        failure_class=failure,
        verdict_class=VerdictClass.INFRA,
        weight=Weight.VOID,
        limit=limit,
        detail=one_line(detail),
    )


def execution_of(task: PlannedTask, seen: Observations) -> Execution:
    """How the candidate's turns ended, when what they left is graded."""
    return Execution.FAILED if unfinished(task, seen) else Execution.COMPLETED


def ungraded(failure: FailureClass, kind: VerdictClass, limit: str | None, detail: str) -> Outcome:
    """A scored failure of a candidate whose turn left nothing that is graded."""
    return Outcome(
        execution=Execution.FAILED,
        grading=Grading.NOT_REQUESTED,
        task=TaskState.FAILED,
        failure_class=failure,
        verdict_class=kind,
        weight=Weight.SCORED,
        limit=limit,
        detail=one_line(detail),
    )
