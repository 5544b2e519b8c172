"""Metrics of one trial, and whether an assertion on one holds. `boxeval.spec.metrics` explains the names."""

from __future__ import annotations

import math
import operator
import re
from pathlib import PurePosixPath

from boxeval.rules import boundary
from boxeval.rules.agent_metrics import calls_that, of_record
from boxeval.rules.chaos import killed_from_outside, of_chaos
from boxeval.rules.checks import judge_checks
from boxeval.rules.endings import exit_code
from boxeval.rules.journal_metrics import of_journal
from boxeval.rules.paths import is_git_internal
from boxeval.rules.reduction import mean_score
from boxeval.rules.turns import turns
from boxeval.spec.agent_record import CallEnd
from boxeval.spec.base import Scalar
from boxeval.spec.box import BoxResult
from boxeval.spec.graded import CheckStatus
from boxeval.spec.outcome import TaskState, Weight
from boxeval.spec.plan import PlannedTask
from boxeval.spec.suite import Assertion, Op
from boxeval.spec.trial import BoundaryStatus, Change, EntryKind, ModelTraffic, Observations

_ORDER = {Op.LT: operator.lt, Op.LTE: operator.le, Op.GT: operator.gt, Op.GTE: operator.ge}
_TEST_FOLDERS = {"test", "tests", "__tests__", "spec", "specs"}
_TEST_FILE = re.compile(r"(test_.*|.*_test\..*|.*\.(test|spec)\..*|conftest\.py)", re.DOTALL)
_NO_FAILURE = "none"
_REQUESTS = ("latency.modelMs", "cost.usd", "tools.totalCalls", "tools.failed")
_STREAM = (
    "stream.cumulativeSnapshots",
    "stream.usageDoubleCounted",
    "stream.segmentUsageMatchesMessages",
)


def measure(task: PlannedTask, seen: Observations, wall_ms: int) -> dict[str, Scalar]:
    """Every metric of this version. `None` is unmeasured: nothing was there to measure, which is not zero.

    `result.pass` and `result.failureClass` say how the trial stands by everything but its assertions, so that
    an assertion may use them; both are None unless that much is scored, and the class is "none" for a pass.
    """
    wire, journal = _of_traffic(seen.traffic), of_journal(task, seen)
    if journal["tools.failed"] is None:
        journal["tools.failed"] = wire["tools.failed"]
    if journal["tools.blocked"] is None:
        journal["tools.blocked"] = calls_that(seen.agent_record, CallEnd.BLOCKED)
    return {
        "latency.wallMs": wall_ms,
        **wire,
        **of_record(seen.agent_record, seen.journal),
        **_of_changes(seen),
        "verifier.exitCode": _last_exit(seen.grader),
        "task.exitCode": (task_exit := _last_exit(seen.measure)),
        "task.solved": None if task_exit is None else task_exit == 0,
        **_of_checks(seen),
        "process.orphanedChildren": _orphans(task, seen),
        **journal,
        **of_chaos(task, seen),
        **_of_boundary(task, seen),
        **_of_result(task, seen),
    }


def holds(assertion: Assertion, value: Scalar) -> bool | None:
    """Whether `value op assertion.value`. None, for every op, if that is unmeasured or has no answer.

    Ordering needs numbers on both sides. Equality is strict in type: a boolean, a number and a string are
    never equal, while 1 and 1.0 are one number, as in JSON.
    """
    if value is None or not (_sane(value) and _sane(assertion.value)):
        return None
    if order := _ORDER.get(assertion.op):
        if _kind(value) is not float or _kind(assertion.value) is not float:
            return None
        return bool(order(value, assertion.value))
    equal = _kind(value) is _kind(assertion.value) and value == assertion.value
    return equal if assertion.op is Op.EQ else not equal


def _kind(value: Scalar) -> type:
    return float if type(value) is int else type(value)


def _sane(value: Scalar) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def _of_traffic(traffic: ModelTraffic | None) -> dict[str, Scalar]:
    if traffic is None:
        return {**_tokens(None), "tokens.measured": False, **dict.fromkeys((*_REQUESTS, *_STREAM))}
    stream, is_measured = traffic.stream, traffic.unmeasured_requests == 0
    return {
        **_tokens(traffic if is_measured else None),
        "tokens.measured": is_measured,
        "latency.modelMs": traffic.model_ms,
        "cost.usd": traffic.cost_usd,
        "tools.totalCalls": traffic.tool_calls,
        "tools.failed": traffic.failed_tool_calls,
        **(
            dict(zip(_STREAM, stream.model_dump().values(), strict=True))
            if stream
            else dict.fromkeys(_STREAM)
        ),
    }


def _tokens(traffic: ModelTraffic | None) -> dict[str, Scalar]:
    """Unmeasured is without counts: what was told of answers that were cut is too little (S21)."""
    if traffic is None:
        return dict.fromkeys(
            f"tokens.{name}" for name in ("input", "output", "total", "cacheRead", "cacheWrite")
        )
    return {
        "tokens.input": traffic.input_tokens,
        "tokens.output": traffic.output_tokens,
        "tokens.total": traffic.input_tokens + traffic.output_tokens,
        "tokens.cacheRead": traffic.cache_read_tokens,
        "tokens.cacheWrite": traffic.cache_write_tokens,
    }


def _of_changes(seen: Observations) -> dict[str, Scalar]:
    if seen.collected is None or seen.collected.limit is not None or seen.collected.error is not None:
        return dict.fromkeys(("patch.filesChanged", "patch.testFilesModified", "patch.bytes"))
    files = [change for change in seen.collected.changes if _is_work(change)]
    patch = seen.collected.patch
    return {
        "patch.filesChanged": len(files),
        "patch.testFilesModified": sum(_is_test(change.path) for change in files),
        "patch.bytes": patch.size_bytes if patch and patch.sha256 else None,
    }


def _orphans(task: PlannedTask, seen: Observations) -> int | None:
    boxes = [turn.box for turn in turns(task, seen)]
    told = [box for box in boxes if box and box.error is None and not killed_from_outside(task, box)]
    counted = [box.orphans for box in told]
    return sum(counted) if counted and len(counted) == len(boxes) else None


def _of_checks(seen: Observations) -> dict[str, Scalar]:
    statuses = [check.status for check in seen.graded]
    if not statuses:
        return dict.fromkeys(f"checks.{name}" for name in ("total", "passed", "failed", "score"))
    return {
        "checks.total": len(statuses),
        "checks.passed": statuses.count(CheckStatus.PASSED),
        "checks.failed": statuses.count(CheckStatus.FAILED),
        "checks.score": mean_score(seen.graded),
    }


def _of_boundary(task: PlannedTask, seen: Observations) -> dict[str, Scalar]:
    """Without a verdict there is nothing to say of it but that there is none."""
    enforced = [turn.enforced for turn in turns(task, seen) if turn.enforced]
    verdicts = [one.boundary for one in enforced if one.boundary]
    if not verdicts:
        names = ("verdictSealed", "violationsDetected", "violationsRolledBack", "rollbackIncomplete")
        return {"boundary.verdictCount": 0, **dict.fromkeys(f"boundary.{name}" for name in names)}
    incomplete = [v for v in verdicts if v.status is BoundaryStatus.ROLLBACK_INCOMPLETE]
    return {
        "boundary.verdictCount": len(verdicts),
        "boundary.verdictSealed": all(boundary.digest(v) == v.digest for v in verdicts),
        "boundary.violationsDetected": sum(len(v.violations) for v in verdicts),
        "boundary.violationsRolledBack": sum(len(v.rolled_back) for v in verdicts),
        "boundary.rollbackIncomplete": len(incomplete),
    }


def _of_result(task: PlannedTask, seen: Observations) -> dict[str, Scalar]:
    outcome = judge_checks(task, seen)
    if outcome.weight is not Weight.SCORED:
        return {"result.pass": None, "result.failureClass": None}
    failure = outcome.failure_class.value if outcome.failure_class else _NO_FAILURE
    return {"result.pass": outcome.task is TaskState.PASSED, "result.failureClass": failure}


def _is_work(change: Change) -> bool:
    """Anything of the work tree but directories; what is in a `.git` is history and no work."""
    return bool({change.kind, change.was} - {None, EntryKind.DIRECTORY}) and not is_git_internal(
        change.path.encode()
    )


def _is_test(path: str) -> bool:
    pure = PurePosixPath(path)
    return bool(_TEST_FOLDERS.intersection(pure.parts[:-1]) or _TEST_FILE.fullmatch(pure.name))


def _last_exit(box: BoxResult | None) -> int | None:
    """The exit code that ended a sequence of commands: that of the first failure, else of the last."""
    if box is None or box.error is not None or not box.commands:
        return None
    return exit_code(box.commands[-1])
