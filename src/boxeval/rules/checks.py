"""The outcomes table up to the assertions: rules in order of precedence, the first that applies decides.

Kept apart from `boxeval.rules.verdict`, so that the metric `result.pass`, which assertions may use, does not
depend on them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from boxeval.rules import forbidden
from boxeval.rules.endings import breach, describe, ended_badly, limit_hit, lost, one_line
from boxeval.spec.outcome import Execution, FailureClass, Grading, Outcome, TaskState, VerdictClass, Weight
from boxeval.spec.plan import PlannedTask
from boxeval.spec.trial import BoxResult, Observations

_NOT_RUN = {FailureClass.SETUP_FAILED, FailureClass.CWD_MISSING, FailureClass.BUDGET_EXHAUSTED}
_MEASURE_METRICS = {"task.exitCode", "task.solved"}


def judge_checks(task: PlannedTask, seen: Observations) -> Outcome:
    """The outcome as if the task had no assertions. Passed means that all else holds."""
    return next(outcome for rule in _RULES if (outcome := rule(task, seen)))


def failed(
    task: PlannedTask,
    seen: Observations,
    failure: FailureClass,
    detail: str,
    kind: VerdictClass = VerdictClass.ASSERTION,
) -> Outcome:
    """A scored failure of a candidate whose turn is graded."""
    turn = _turn(task, seen)
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


@dataclass(frozen=True, slots=True)
class _Turn:
    """A candidate's turn that did not end well by the candidate's doing."""

    failure: FailureClass
    limit: str | None
    detail: str


def _turn(task: PlannedTask, seen: Observations) -> _Turn | None:
    box = seen.agent
    bad = ended_badly(box) if box else None
    if not box or not bad:
        return None
    number, command = bad
    name = f"agent's command {number}" if len(box.commands) > 1 else "agent"
    if command.timed_out:
        text = f"{name} passed its deadline of {task.agent_timeout_ms} ms and was killed"
        return _Turn(FailureClass.TIMEOUT, "agent", text)
    text = f"{name} {describe(command)}"
    if limit := limit_hit(box, command):
        failure = FailureClass.OOM if limit == "memory" else FailureClass.RESOURCE_LIMIT
        return _Turn(failure, limit, f"{text}; it hit the limit of its policy on {limit}")
    if seen.traffic and seen.traffic.error:
        text += f"; model: {seen.traffic.error}"
    return _Turn(FailureClass.RUNNER_FAILED, None, text)


def _void(
    failure: FailureClass,
    detail: str,
    execution: Execution = Execution.FAILED,
    grading: Grading = Grading.NOT_REQUESTED,
    limit: str | None = None,
) -> Outcome:
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


def _cancelled(_task: PlannedTask, seen: Observations) -> Outcome | None:
    return (
        _void(FailureClass.CANCELLED, "the run was interrupted", Execution.CANCELLED)
        if seen.cancelled
        else None
    )


def _fault(_task: PlannedTask, seen: Observations) -> Outcome | None:
    if seen.fault is None:
        return None
    execution = Execution.NOT_RUN if seen.fault.failure_class in _NOT_RUN else Execution.FAILED
    return _void(seen.fault.failure_class, seen.fault.detail, execution)


def _broken_turn(_task: PlannedTask, seen: Observations) -> Outcome | None:
    box = seen.agent
    if box is None:
        return _void(FailureClass.COMMAND_ERROR, "the agent's box left no report")
    if reason := breach(box):
        return _void(FailureClass.ISOLATION_FAILED, f"agent: {reason}")
    if box.error is not None:
        return _void(FailureClass.COMMAND_ERROR, f"agent: {box.error}")
    if not box.commands:
        return _void(FailureClass.COMMAND_ERROR, "the agent's box reported no command")
    if seen.traffic and seen.traffic.failed_before_first_turn:
        reason = seen.traffic.error or "no answer"
        return _void(FailureClass.PROVIDER_ERROR, f"the model failed before its first turn: {reason}")
    bad = ended_badly(box)
    if bad and (bad[1].spawn_error or lost(bad[1])):
        how = describe(bad[1]) if bad[1].spawn_error else "did not report its end"
        return _void(FailureClass.COMMAND_ERROR, f"agent's command {bad[0]} {how}")
    return None


def _ended_turn(task: PlannedTask, seen: Observations) -> Outcome | None:
    turn = _turn(task, seen)
    if turn is None or (task.verify.grade_incomplete and _has_checks(task)):
        return None
    return Outcome(
        execution=Execution.FAILED,
        grading=Grading.NOT_REQUESTED,
        task=TaskState.FAILED,
        failure_class=turn.failure,
        verdict_class=VerdictClass.TIMEOUT
        if turn.failure is FailureClass.TIMEOUT
        else VerdictClass.ASSERTION,
        weight=Weight.SCORED,
        limit=turn.limit,
        detail=one_line(turn.detail),
    )


def _too_much(_task: PlannedTask, seen: Observations) -> Outcome | None:
    """Changes past a collect cap are the candidate's doing; void, a candidate could choose them."""
    if seen.collected is None or seen.collected.limit is None:
        return None
    return Outcome(
        execution=Execution.FAILED,
        grading=Grading.NOT_REQUESTED,
        task=TaskState.FAILED,
        failure_class=FailureClass.RESOURCE_LIMIT,
        verdict_class=VerdictClass.ASSERTION,
        weight=Weight.SCORED,
        limit="workspace changes",
        detail=one_line(f"the agent's changes break a cap of its policy: {seen.collected.limit}"),
    )


def _missing_evidence(task: PlannedTask, seen: Observations) -> Outcome | None:
    execution = _execution(task, seen)
    if seen.collected is None:
        if not _has_checks(task):
            return None
        return _void(
            FailureClass.EVIDENCE_MISSING, "no changes were collected", execution, Grading.UNAVAILABLE
        )
    if seen.collected.error is None:
        return None
    return _void(FailureClass.EVIDENCE_MISSING, seen.collected.error, execution, Grading.UNAVAILABLE)


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


def _broken_grading(task: PlannedTask, seen: Observations) -> Outcome | None:
    """A breach in a box of the grading makes everything in the trial doubtful, whatever was found before."""
    for role, box in (("measure", seen.measure), ("grader", seen.grader)):
        if box and (reason := breach(box)):
            return _void(
                FailureClass.ISOLATION_FAILED, f"{role}: {reason}", _execution(task, seen), Grading.ERROR
            )
    return None


def _forbidden(task: PlannedTask, seen: Observations) -> Outcome | None:
    changes = seen.collected.changes if seen.collected else ()
    paths = forbidden.match(changes, task.verify.forbid_paths)
    if not paths:
        return None
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    detail = f"forbidden path changed: {paths[0]}{more}"
    return failed(task, seen, FailureClass.FORBIDDEN_PATH, detail, VerdictClass.CONTRACT)


def _measure(task: PlannedTask, seen: Observations) -> Outcome | None:
    """What the measure command gives is data; only an assertion that reads it makes its faults matter."""
    if task.verify.measure is None or not any(a.metric in _MEASURE_METRICS for a in task.verify.assertions):
        return None
    return _grader_fault(task, seen, seen.measure, "measure", 1)


def _commands(task: PlannedTask, seen: Observations) -> Outcome | None:
    commands = task.verify.commands
    if not commands:
        return None
    if fault := _grader_fault(task, seen, seen.grader, "grader", len(commands)):
        return fault
    bad = ended_badly(seen.grader) if seen.grader else None
    if not seen.grader or not bad:
        return None
    number, command = bad
    limit = limit_hit(seen.grader, command)
    note = f" at the grader's limit on {limit}" if limit else ""
    text = f"command {number} of {len(commands)} {describe(command)}{note}: {commands[number - 1]}"
    return failed(task, seen, FailureClass.VERIFIER_FAILED, text)


def _grader_fault(
    task: PlannedTask, seen: Observations, box: BoxResult | None, role: str, count: int
) -> Outcome | None:
    """A grader that could not do its work: the candidate is neither passed nor failed by it."""
    reason, failure, limit = _fault_of(task, box, role, count) or (None, FailureClass.GRADER_ERROR, None)
    return _void(failure, reason, _execution(task, seen), Grading.ERROR, limit) if reason else None


def _fault_of(
    task: PlannedTask, box: BoxResult | None, role: str, count: int
) -> tuple[str, FailureClass, str | None] | None:
    if box is None:
        return f"{role}: its box left no report", FailureClass.GRADER_ERROR, None
    if box.error is not None:
        return f"{role}: {box.error}", FailureClass.GRADER_ERROR, None
    bad = ended_badly(box)
    if bad is None:
        if len(box.commands) == count:
            return None
        return f"{role}: {len(box.commands)} of {count} commands reported", FailureClass.GRADER_ERROR, None
    number, command = bad
    name = f"{role}: command {number} of {count}"
    if command.timed_out:
        text = f"{name} passed the deadline of {task.grader_timeout_ms} ms for all of them"
        return text, FailureClass.TIMEOUT, "grader"
    if number > count or command.spawn_error or lost(command):
        how = describe(command) if command.spawn_error else "did not report its end"
        return f"{name} {how}", FailureClass.GRADER_ERROR, None
    if limit_hit(box, command) == "memory":
        return f"{name} {describe(command)}; it ran out of memory", FailureClass.GRADER_ERROR, "memory"
    return None


def _passed(task: PlannedTask, seen: Observations) -> Outcome | None:
    turn = _turn(task, seen)
    return Outcome(
        execution=Execution.FAILED if turn else Execution.COMPLETED,
        grading=Grading.COMPLETED,
        task=TaskState.PASSED,
        weight=Weight.SCORED,
        limit=turn.limit if turn else None,
        detail=one_line(f"the turn: {turn.detail}") if turn else None,
    )


def _has_checks(task: PlannedTask) -> bool:
    return bool(task.verify.commands or task.verify.assertions or task.verify.forbid_paths)


def _execution(task: PlannedTask, seen: Observations) -> Execution:
    return Execution.FAILED if _turn(task, seen) else Execution.COMPLETED


_RULES: tuple[Callable[[PlannedTask, Observations], Outcome | None], ...] = (
    _cancelled,
    _fault,
    _broken_turn,
    _ended_turn,
    _too_much,
    _missing_evidence,
    _nothing_to_check,
    _broken_grading,
    _forbidden,
    _measure,
    _commands,
    _passed,
)
