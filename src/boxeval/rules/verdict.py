"""The verdict: one pure function from evidence to a row of the outcomes table (docs/outcomes.md)."""

from __future__ import annotations

from collections.abc import Mapping

from boxeval.rules.agent_evidence import unreadable_artifact
from boxeval.rules.checks import judge_checks
from boxeval.rules.metrics import holds
from boxeval.rules.rows import failed
from boxeval.spec.base import Scalar
from boxeval.spec.outcome import FailureClass, Outcome, TaskState
from boxeval.spec.plan import PlannedTask
from boxeval.spec.trial import Observations


def decide(task: PlannedTask, seen: Observations, metrics: Mapping[str, Scalar]) -> Outcome:
    """The outcome of a trial. `metrics` is what `boxeval.rules.metrics.measure` gives for the same evidence.

    The first of these that applies decides (all but the last are in `boxeval.rules.checks`). A task with steps has
    a turn a step, and the first that is not as it should be is the last that ran:

    1. cancelled;
    2. a fault before the candidate ran; else, in a dry run, that it is one;
    3. a turn's box: isolation breach, engine fault, a budget of the run that refused it an answer, a model
       that failed before its first turn, a command
       that could not be started or whose end was not reported;
    4. a turn ended badly: deadline, limit of the policy, nonzero exit or signal. With `gradeIncomplete`,
       and something to check, grading goes on and alone decides;
    5. the changes break a cap of the policy, could not be collected, or were not held against what bounds them;
    6. nothing to check;
    7. an isolation breach in a box of the grading;
    8. a write outside a turn's boundary: a contract violation stands whatever was put back, and whatever the
       graders say or fail to say;
    9. a forbidden path, for the same reason;
    10. a check between steps: a grader that could not do its work, then the first nonzero exit; then a step that
        is missing without a cause;
    11. a measure command that could not do its work, if an assertion reads it;
    12. the commands and the checks: one that failed, then a grader that could not do its work, then evidence that
        is missing (`boxeval.rules.criteria`);
    13. the assertions, in order: unmeasured, then false;
    14. a declared part of an agent's home that could not be read whole. It comes last, since a candidate can bring it
        about: what has failed by anything else has failed.

    `expect` and `expectClass` play no part: they matter in the report.
    """
    outcome = judge_checks(task, seen)
    if outcome.task is not TaskState.PASSED:
        return outcome
    for number, assertion in enumerate(task.verify.assertions, start=1):
        value = metrics.get(assertion.metric)
        held = holds(assertion, value)
        if held:
            continue
        wanted = f"assertion {number}: expected {assertion.metric} {assertion.op} {assertion.value!r}"
        if held is None:
            found = "is unmeasured" if value is None else f"is {value!r}, which cannot be compared"
            return failed(task, seen, FailureClass.ASSERTION_UNRESOLVED, f"{wanted}, but it {found}")
        return failed(task, seen, FailureClass.ASSERTION_FAILED, f"{wanted}, but it is {value!r}")
    return unreadable_artifact(task, seen) or outcome
