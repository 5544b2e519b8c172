"""The outcomes table up to the assertions: rules in order of precedence, the first that applies decides.

Kept apart from `boxeval.rules.verdict`, so that the metric `result.pass`, which assertions may use, does not
depend on them.
"""

from __future__ import annotations

from collections.abc import Callable

from boxeval.rules import criteria, forbidden, grading
from boxeval.rules.endings import breach, describe, ended_badly, ended_by_memory, lost, one_line
from boxeval.rules.rows import execution_of, failed, ungraded, void
from boxeval.rules.turns import Turn, has_boundary, record_of, self_inflicted, turns, unfinished
from boxeval.spec.agent_record import TurnRecord
from boxeval.spec.box import BoxResult
from boxeval.spec.outcome import Execution, FailureClass, Grading, Outcome, TaskState, VerdictClass, Weight
from boxeval.spec.plan import PlannedTask
from boxeval.spec.trial import Observations

_NOT_RUN = {
    FailureClass.SETUP_FAILED,
    FailureClass.CWD_MISSING,
    FailureClass.BUDGET_EXHAUSTED,
    FailureClass.GRADER_ERROR,
}


def judge_checks(task: PlannedTask, seen: Observations) -> Outcome:
    """The outcome as if the task had no assertions. Passed means that all else holds."""
    return next(outcome for rule in _RULES if (outcome := rule(task, seen)))


def _cancelled(_task: PlannedTask, seen: Observations) -> Outcome | None:
    return (
        void(FailureClass.CANCELLED, "the run was interrupted", Execution.CANCELLED)
        if seen.cancelled
        else None
    )


def _fault(_task: PlannedTask, seen: Observations) -> Outcome | None:
    if seen.fault is None:
        return None
    execution = Execution.NOT_RUN if seen.fault.failure_class in _NOT_RUN else Execution.FAILED
    is_grader = seen.fault.failure_class is FailureClass.GRADER_ERROR
    grading_state = Grading.ERROR if is_grader else Grading.NOT_REQUESTED
    return void(seen.fault.failure_class, seen.fault.detail, execution, grading_state)


def _dry(task: PlannedTask, _seen: Observations) -> Outcome | None:
    if not task.dry:
        return None
    return Outcome(
        execution=Execution.NOT_RUN,
        grading=Grading.NOT_REQUESTED,
        task=TaskState.NOT_ASSESSED,
        weight=Weight.NOT_COUNTED,
        detail="a dry run: all is prepared, nothing was started",
    )


def _broken_turn(task: PlannedTask, seen: Observations) -> Outcome | None:
    taken = turns(task, seen)
    for turn in taken:
        if reason := turn.box and breach(turn.box):
            return void(FailureClass.ISOLATION_FAILED, f"{turn.name}: {reason}")
    for turn in taken:
        if refused := _refused(record_of(turn, seen)):
            execution = Execution.NOT_RUN if refused[0] in _NOT_RUN else Execution.FAILED
            return void(*refused, execution)
    for turn in taken:
        if turn.box and ended_by_memory(turn.box):
            continue  # the candidate's doing: see `unfinished`
        if reason := _box_fault(turn.box):
            return void(FailureClass.COMMAND_ERROR, f"{turn.name}{reason}")
    if not taken:
        return void(FailureClass.COMMAND_ERROR, "no step left a report")
    if seen.traffic and seen.traffic.run_budget_spent:
        # Whatever the verdict would be: voiding the failed ones only would make the others look better.
        return void(FailureClass.BUDGET_EXHAUSTED, f"a request was refused: {seen.traffic.limit}")
    if seen.traffic and seen.traffic.failed_before_first_turn:
        reason = seen.traffic.error or "no answer"
        return void(FailureClass.PROVIDER_ERROR, f"the model failed before its first turn: {reason}")
    for turn in taken:
        if reason := _spawn_fault(turn):
            return void(FailureClass.COMMAND_ERROR, reason)
    return None


def _refused(record: TurnRecord | None) -> tuple[FailureClass, str] | None:
    """Why the probe kept an agent from beginning."""
    found = record.preflight if record else None
    if found and found.breaches:
        return FailureClass.ISOLATION_FAILED, f"the probe before the turn: {'; '.join(found.breaches)}"
    if found and found.broken:
        return FailureClass.COMMAND_ERROR, f"the probe before the turn: {found.broken}"
    ready = record.preparation if record else None
    if ready and ready.fault:
        return FailureClass.SETUP_FAILED, f"before the turn: {ready.fault}"
    return None


def _box_fault(box: BoxResult | None) -> str | None:
    if box is None:
        return "'s box left no report"
    if box.error is not None:
        return f": {box.error}"
    return None if box.commands else "'s box reported no command"


def _spawn_fault(turn: Turn) -> str | None:
    bad = ended_badly(turn.box) if turn.box else None
    if not bad or not (bad[1].spawn_error or lost(bad[1])):
        return None
    if self_inflicted(not turn.is_first or bad[0] > 1, bad[1]):
        return None
    how = describe(bad[1]) if bad[1].spawn_error else "did not report its end"
    return f"{turn.name}'s command {bad[0]} {how}"


def _ended_turn(task: PlannedTask, seen: Observations) -> Outcome | None:
    turn = unfinished(task, seen)
    box_lost = any(one.box and ended_by_memory(one.box) for one in turns(task, seen))
    goes_on = task.verify.grade_incomplete and _has_checks(task) and not box_lost
    if turn is None or goes_on:
        return None
    is_late = turn.failure is FailureClass.TIMEOUT
    kind = VerdictClass.TIMEOUT if is_late else VerdictClass.ASSERTION
    return ungraded(turn.failure, kind, turn.limit, turn.detail)


def _too_much(_task: PlannedTask, seen: Observations) -> Outcome | None:
    """Changes past a collect cap are the candidate's doing; void, a candidate could choose them."""
    if seen.collected is None or seen.collected.limit is None:
        return None
    return ungraded(
        FailureClass.RESOURCE_LIMIT,
        VerdictClass.ASSERTION,
        "workspace changes",
        f"the agent's changes break a cap of its policy: {seen.collected.limit}",
    )


def _missing_evidence(task: PlannedTask, seen: Observations) -> Outcome | None:
    execution = execution_of(task, seen)
    if seen.collected is None:
        if not _has_checks(task):
            return None
        return void(
            FailureClass.EVIDENCE_MISSING, "no changes were collected", execution, Grading.UNAVAILABLE
        )
    if seen.collected.error is not None:
        return void(FailureClass.EVIDENCE_MISSING, seen.collected.error, execution, Grading.UNAVAILABLE)
    for turn in turns(task, seen):
        lacks = "no changes" if turn.collected is None else _not_enforced(task, turn)
        if lacks:
            return void(
                FailureClass.EVIDENCE_MISSING, f"{turn.name}: {lacks}", execution, Grading.UNAVAILABLE
            )
    return None


def _not_enforced(task: PlannedTask, turn: Turn) -> str | None:
    if has_boundary(turn) and (turn.enforced is None or turn.enforced.boundary is None):
        return "no verdict on its write boundary"
    return "protected paths were not looked at" if task.protect and turn.enforced is None else None


def _nothing_to_check(task: PlannedTask, _seen: Observations) -> Outcome | None:
    if _has_checks(task):
        return None
    return Outcome(
        execution=Execution.COMPLETED,
        grading=Grading.NOT_REQUESTED,
        task=TaskState.NOT_ASSESSED,
        weight=Weight.NOT_COUNTED,
        detail="the task declares no checks",
    )


def _boundary(task: PlannedTask, seen: Observations) -> Outcome | None:
    """A turn that wrote where it may not: the contract is broken, whatever was put back since."""
    for turn in turns(task, seen):
        verdict = turn.enforced.boundary if turn.enforced else None
        if verdict is None or not verdict.violations:
            continue
        first, count = verdict.violations[0], len(verdict.violations)
        more = f" and {count - 1} more" if count > 1 else ""
        left = verdict.unrecoverable
        then = f"; {len(left)} could not be put back: {left[0].reason}" if left else "; rolled back"
        detail = f"{turn.name} wrote outside its boundary: {first.path} ({first.kind}){more}{then}"
        return failed(task, seen, FailureClass.WRITES_BOUNDARY_VIOLATION, detail, VerdictClass.CONTRACT)
    return None


def _forbidden(task: PlannedTask, seen: Observations) -> Outcome | None:
    changes = [change for turn in turns(task, seen) if turn.collected for change in turn.collected.changes]
    paths = tuple(dict.fromkeys(forbidden.match(changes, task.verify.forbid_paths)))
    if not paths:
        return None
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    detail = f"forbidden path changed: {paths[0]}{more}"
    return failed(task, seen, FailureClass.FORBIDDEN_PATH, detail, VerdictClass.CONTRACT)


def _passed(task: PlannedTask, seen: Observations) -> Outcome | None:
    turn = unfinished(task, seen)
    return Outcome(
        execution=Execution.FAILED if turn else Execution.COMPLETED,
        grading=Grading.COMPLETED,
        task=TaskState.PASSED,
        weight=Weight.SCORED,
        limit=turn.limit if turn else None,
        detail=one_line(f"the turn: {turn.detail}") if turn else None,
    )


def _has_checks(task: PlannedTask) -> bool:
    """A declared write boundary is a check too."""
    verify = task.verify
    bounded = task.writes is not None or any(step.writes is not None for step in task.steps)
    checked = any(step.verify for step in task.steps)
    return bool(
        verify.commands
        or verify.checks
        or verify.extension
        or verify.assertions
        or verify.forbid_paths
        or bounded
        or checked
    )


_RULES: tuple[Callable[[PlannedTask, Observations], Outcome | None], ...] = (
    _cancelled,
    _fault,
    _dry,
    _broken_turn,
    _ended_turn,
    _too_much,
    _missing_evidence,
    _nothing_to_check,
    grading.broken_grading,
    _boundary,
    _forbidden,
    grading.step_checks,
    grading.lost_step,
    grading.measure,
    criteria.criteria,
    _passed,
)
