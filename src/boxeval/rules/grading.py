"""What graders found, and faults of their own: checks between steps, the measurement, the commands."""

from __future__ import annotations

from boxeval.rules.endings import breach, describe, ended_badly, limit_hit, lost
from boxeval.rules.rows import execution_of, failed, void
from boxeval.rules.turns import self_inflicted, turns, unfinished
from boxeval.spec.box import BoxResult
from boxeval.spec.outcome import FailureClass, Grading, Outcome
from boxeval.spec.plan import PlannedTask
from boxeval.spec.trial import Observations

_MEASURE_METRICS = {"task.exitCode", "task.solved"}


def broken_grading(task: PlannedTask, seen: Observations) -> Outcome | None:
    """A breach in a box of the grading makes everything in the trial doubtful, whatever was found before."""
    checks = tuple((f"check of {turn.name}", turn.verify) for turn in turns(task, seen))
    own = [(f"check {check.id}", check.box) for check in seen.checks]
    git = ("the box that read HEAD", seen.git_head.box if seen.git_head else None)
    asked = (
        [(f"extension {one.method}", one.box) for one in seen.extension.exchanges] if seen.extension else []
    )
    for role, box in (*checks, ("measure", seen.measure), ("grader", seen.grader), *own, git, *asked):
        if box and (reason := breach(box)):
            return void(
                FailureClass.ISOLATION_FAILED, f"{role}: {reason}", execution_of(task, seen), Grading.ERROR
            )
    return None


def step_checks(task: PlannedTask, seen: Observations) -> Outcome | None:
    """The checks between steps, of every step whose turn ended well."""
    for turn in turns(task, seen):
        if turn.step and turn.step.verify and turn.box and not ended_badly(turn.box):
            commands, deadline_ms = turn.step.verify.commands, turn.step.verify_timeout_ms
            name = f"check of {turn.name}"
            if outcome := _grade_of(task, seen, turn.verify, name, commands, deadline_ms):
                return outcome
    return None


def lost_step(task: PlannedTask, seen: Observations) -> Outcome | None:
    """A sequence that ends early, though nothing that was seen ended it."""
    count = len(turns(task, seen))
    if count >= len(task.steps) or unfinished(task, seen):
        return None
    return void(FailureClass.COMMAND_ERROR, f"step {task.steps[count].id} left no report")


def measure(task: PlannedTask, seen: Observations) -> Outcome | None:
    """What the measure command gives is data; only an assertion that reads it makes its faults matter."""
    if task.verify.measure is None or not any(a.metric in _MEASURE_METRICS for a in task.verify.assertions):
        return None
    return _grader_fault(task, seen, seen.measure, "measure", 1, task.grader_timeout_ms)


def commands(task: PlannedTask, seen: Observations) -> Outcome | None:
    """The final commands: the first that fails decides."""
    wanted = task.verify.commands
    return _grade_of(task, seen, seen.grader, "grader", wanted, task.grader_timeout_ms) if wanted else None


def _grade_of(
    task: PlannedTask,
    seen: Observations,
    box: BoxResult | None,
    role: str,
    commands: tuple[str, ...],
    deadline_ms: int,
) -> Outcome | None:
    if fault := _grader_fault(task, seen, box, role, len(commands), deadline_ms):
        return fault
    bad = ended_badly(box) if box else None
    if not box or not bad:
        return None
    number, command = bad
    limit = limit_hit(box, command)
    note = f" at the grader's limit on {limit}" if limit else ""
    where = "" if role == "grader" else f"{role}: "
    text = f"{where}command {number} of {len(commands)} {describe(command)}{note}: {commands[number - 1]}"
    return failed(task, seen, FailureClass.VERIFIER_FAILED, text)


def _grader_fault(
    task: PlannedTask, seen: Observations, box: BoxResult | None, role: str, count: int, deadline_ms: int
) -> Outcome | None:
    """A grader that could not do its work: the candidate is neither passed nor failed by it."""
    reason, failure, limit = fault_of(box, role, count, deadline_ms) or (
        None,
        FailureClass.GRADER_ERROR,
        None,
    )
    return void(failure, reason, execution_of(task, seen), Grading.ERROR, limit) if reason else None


def fault_of(
    box: BoxResult | None, role: str, count: int, deadline_ms: int
) -> tuple[str, FailureClass, str | None] | None:
    """What kept a grader's box from doing its work: in words, its class, and the limit it ran into."""
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
        text = f"{name} passed the deadline of {deadline_ms} ms for all of them"
        return text, FailureClass.TIMEOUT, "grader"
    if self_inflicted(number > 1, command):
        return None
    if number > count or command.spawn_error or lost(command):
        how = describe(command) if command.spawn_error else "did not report its end"
        return f"{name} {how}", FailureClass.GRADER_ERROR, None
    if limit_hit(box, command) == "memory":
        return f"{name} {describe(command)}; it ran out of memory", FailureClass.GRADER_ERROR, "memory"
    return None
