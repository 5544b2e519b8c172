"""The verdict of everything that grades what a candidate left: the commands, and the checks beside them."""

from __future__ import annotations

from boxeval.rules import grading
from boxeval.rules.message import missing_evidence
from boxeval.rules.reduction import THRESHOLD, mean_score, reduce, weighed
from boxeval.rules.rows import execution_of, failed, ungraded, void
from boxeval.rules.turns import unfinished
from boxeval.spec.graded import CheckSeen, CheckStatus
from boxeval.spec.outcome import Execution, FailureClass, Grading, Outcome, TaskState, VerdictClass
from boxeval.spec.plan import PlannedTask
from boxeval.spec.trial import Observations

_NAMED = 5


def criteria(task: PlannedTask, seen: Observations) -> Outcome | None:
    """None if the commands, all checks and the required evidence are as they should be.

    Commands are one criterion beside the checks: whatever fails has failed, also beside a grader that could not do
    its work (G62).
    """
    by_commands = grading.commands(task, seen)
    extension = task.verify.extension
    if not task.verify.checks and not task.required_evidence and extension is None:
        return by_commands
    if extension is not None and extension.verdict_policy is not None:
        return _recommended(task, seen, extension.verdict_policy, by_commands)
    missing = missing_evidence(task, seen)
    state, verdict = reduce(Execution.COMPLETED, wanted(task, seen), statuses(task, seen), not missing)
    if by_commands and by_commands.task is not TaskState.FAILED:
        state = Grading.ERROR
    if by_commands and by_commands.task is TaskState.FAILED:
        return by_commands.model_copy(
            update={"grading": state if wanted(task, seen) else by_commands.grading}
        )
    if verdict is TaskState.FAILED:
        detail = _failures(task, seen)
        return failed(task, seen, FailureClass.VERIFIER_FAILED, detail).model_copy(update={"grading": state})
    if by_commands:
        return by_commands
    return _undecided(task, seen, state, missing)


def wanted(task: PlannedTask, seen: Observations) -> int:
    """How many checks there must be. An extension says itself how many it has, and one at least."""
    own = max(len(seen.extension.checks), 1) if seen.extension else 1
    return len(task.verify.checks) + (own if task.verify.extension else 0)


def statuses(task: PlannedTask, seen: Observations) -> list[CheckStatus]:
    """What counts of each check: its own status, or what weighted scoring makes of all."""
    if task.verify.scoring == "weighted":
        return weighed(seen.graded, task.verify.threshold or THRESHOLD)
    return [check.status for check in seen.graded]


def _recommended(
    task: PlannedTask, seen: Observations, policy: str, by_commands: Outcome | None
) -> Outcome | None:
    """What the selected policy recommends. It decides in the place of the checks, and hides no grader's fault."""
    if by_commands and by_commands.task is not TaskState.FAILED:
        return by_commands
    found = [check.status for check in seen.graded]
    undecided = [status for status in found if status in (CheckStatus.ERROR, CheckStatus.UNAVAILABLE)]
    missing = missing_evidence(task, seen)
    recommendation = seen.extension.recommendation if seen.extension else None
    if undecided or missing or len(seen.checks) != len(task.verify.checks):
        state = Grading.ERROR if CheckStatus.ERROR in undecided else Grading.UNAVAILABLE
        return _undecided(task, seen, state, missing)
    if recommendation == "passed":
        return None
    detail = f"verdict policy {policy}: the extension recommends {recommendation or 'nothing'}"
    if recommendation == "failed":
        return failed(task, seen, FailureClass.VERIFIER_FAILED, detail)
    return void(FailureClass.EVIDENCE_MISSING, detail, execution_of(task, seen), Grading.UNAVAILABLE)


def _undecided(
    task: PlannedTask, seen: Observations, state: Grading, missing: tuple[str, ...]
) -> Outcome | None:
    if state is Grading.ERROR:
        bad = next(check for check in seen.graded if check.status is CheckStatus.ERROR)
        failure = FailureClass.TIMEOUT if bad.limit == "time" else FailureClass.GRADER_ERROR
        limit = "grader" if bad.limit == "time" else bad.limit
        return void(failure, _words(bad), execution_of(task, seen), Grading.ERROR, limit)
    if state is not Grading.UNAVAILABLE:
        return None
    if turn := unfinished(task, seen):
        # With gradeIncomplete. Void, a candidate could choose it by not ending its turn.
        kind = VerdictClass.TIMEOUT if turn.failure is FailureClass.TIMEOUT else VerdictClass.ASSERTION
        return ungraded(turn.failure, kind, turn.limit, turn.detail)
    if missing:
        detail = f"required evidence is missing: {', '.join(missing)}"
    else:
        bad_or_none = next((c for c in seen.graded if c.status is CheckStatus.UNAVAILABLE), None)
        detail = _words(bad_or_none) if bad_or_none else "the checks left no record"
    return void(FailureClass.EVIDENCE_MISSING, detail, Execution.COMPLETED, Grading.UNAVAILABLE)


def _failures(task: PlannedTask, seen: Observations) -> str:
    bad = [check for check in seen.graded if check.status is CheckStatus.FAILED]
    if task.verify.scoring == "weighted":
        mean = mean_score(seen.graded)
        found = "cannot reach" if mean is None else f"is {mean:.3f}, under"
        lead = f"the mean score {found} {task.verify.threshold or THRESHOLD}"
        return f"{lead}; {_words(bad[0])}" if bad else lead
    more = ", ".join(check.id for check in bad[1:_NAMED])
    rest = f"; failed too: {more}" + (" and more" if len(bad) > _NAMED else "") if more else ""
    return _words(bad[0]) + rest


def _words(check: CheckSeen) -> str:
    text = f"check {check.id} ({check.grader}): {check.reason or check.status.value}"
    if check.expected is not None:
        text += f"; expected {check.expected}"
    return text + (f", received {check.received}" if check.received is not None else "")
