"""From a verified run to its report. Takes nothing that `verify` has not made, and reads no file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta

from boxeval.receipts.evidence import referenced_blobs
from boxeval.receipts.trust import instant
from boxeval.receipts.verify import VerifiedRun
from boxeval.rules.attempts import by_trial, deciding
from boxeval.rules.cause import failure_cause
from boxeval.rules.estimators import estimate, macro_average
from boxeval.rules.metrics import holds
from boxeval.spec.estimates import Estimates
from boxeval.spec.graded import CheckSeen
from boxeval.spec.outcome import FailureClass, TaskState, Weight
from boxeval.spec.plan import PlannedTask
from boxeval.spec.report import (
    Attempt,
    CheckLine,
    Cost,
    Counts,
    EvidenceRef,
    Report,
    Row,
    ThresholdResult,
    Tokens,
    TrialLine,
)
from boxeval.spec.suite import Assertion
from boxeval.spec.trial import Trial


def aggregate(run: VerifiedRun) -> Report:
    """The report of a verified run, in plan order."""
    if not isinstance(run, VerifiedRun):
        raise TypeError("only a VerifiedRun can be counted")
    plan = run.plan
    lines = _lines(run)
    rows = _rows(run, lines)
    return Report(
        run_id=plan.run_id,
        suite=plan.suite,
        provenance=plan.provenance,
        images=plan.images,
        hermetic=plan.hermetic,
        selection=plan.selection,
        left_out=plan.left_out,
        opened_at=run.opened_at,
        resumed_at=run.resumed_at,
        closed_at=run.closed_at,
        interrupted_by=run.interrupted_by,
        complete=run.complete,
        missing=run.missing,
        problems=run.problems,
        keyid=run.keyid,
        key_label=run.key_label,
        checkpoint=run.checkpoint,
        totals=_counts(lines, len(run.missing)),
        rows=rows,
        estimates=macro_average([row.estimates for row in rows if row.expect != "failed"]),
        trials=lines,
        tokens=_tokens(lines),
        cost=_cost(lines),
        wall_time_ms=_wall_ms(run),
        trials_ms=sum(line.wall_ms for line in lines),
        thresholds=tuple(_threshold(condition, lines) for condition in plan.thresholds),
    )


def conclusion(report: Report) -> tuple[int, str]:
    """The exit code of a command that judges this run, and why in a few words. 1 beats 3."""
    totals = report.totals
    fired = [threshold for threshold in report.thresholds if threshold.fired_by]
    if totals.unexpected:
        scored = totals.passed + totals.failed
        return 1, f"{totals.unexpected} of {scored} scored trials did not end as expected"
    if fired:
        return 1, f"{len(fired)} of {len(report.thresholds)} failure thresholds were met"
    if totals.void or totals.missing or not report.complete or report.interrupted_by:
        return 3, f"incomplete: {totals.void} void, {totals.missing} missing"
    if not totals.passed and not totals.failed:
        return 1, "passed-empty: nothing was assessed"
    return 0, "every scored trial ended as expected"


def exit_code(report: Report) -> int:
    """0 good, 1 a negative answer, 3 incomplete (docs/exit-codes.md)."""
    return conclusion(report)[0]


def _lines(run: VerifiedRun) -> tuple[TrialLine, ...]:
    """One line a planned trial that has receipts: its earliest scored attempt, else its last."""
    attempts = by_trial(run.trials)
    tasks = {(task.task, task.target): task for task in run.plan.tasks}
    lines = []
    for place in run.plan.trials:
        if made := attempts.get(place.trial_id):
            lines.append(_line(run.plan.run_id, made, tasks[place.task, place.target]))
    return tuple(lines)


def _line(run_id: str, made: Sequence[Trial], task: PlannedTask) -> TrialLine:
    trial = deciding(made)
    return TrialLine(
        key=f"{trial.task}[{trial.target}]#{trial.repeat}",
        trial_id=trial.trial_id,
        task=trial.task,
        target=trial.target,
        repeat=trial.repeat,
        attempt=trial.attempt,
        others=tuple(_attempt(other) for other in made if other is not trial),
        title=task.title,
        expect=task.expect,
        expect_class=task.expect_class,
        outcome=trial.outcome,
        failure_cause=failure_cause(trial.observations, trial.outcome),
        as_expected=as_expected(trial, task),
        started_at=trial.started_at,
        wall_ms=trial.wall_ms,
        steps_ms=trial.steps_ms,
        metrics=trial.metrics,
        evidence=tuple(EvidenceRef(name=n, sha256=s) for n, s in referenced_blobs(trial.observations)),
        checks=tuple(_check(check) for check in trial.observations.graded),
        look=f"boxeval show {run_id} {trial.trial_id}",
    )


def _check(check: CheckSeen) -> CheckLine:
    return CheckLine(**check.model_dump(include=set(CheckLine.model_fields)))


def _attempt(trial: Trial) -> Attempt:
    return Attempt(
        attempt=trial.attempt, started_at=trial.started_at, wall_ms=trial.wall_ms, outcome=trial.outcome
    )


def as_expected(trial: Trial, task: PlannedTask) -> bool | None:
    """Whether a scored trial ended as its task declares; None for what is not scored.

    An expected failure of a class that assertions do not give must also hold the task's assertions: they say what the
    machinery did about it (docs/adr/0008-steps.md).
    """
    outcome = trial.outcome
    if outcome.weight is not Weight.SCORED:
        return None
    if task.expect != "failed":
        return outcome.task is TaskState.PASSED
    if outcome.task is not TaskState.FAILED:
        return False
    if task.expect_class is None:
        return True
    return outcome.failure_class == task.expect_class and not unmet(trial, task)


def unmet(trial: Trial, task: PlannedTask) -> tuple[Assertion, ...]:
    """The assertions that a failure of the expected class leaves open, and that do not hold."""
    if task.expect_class in (None, FailureClass.ASSERTION_FAILED, FailureClass.ASSERTION_UNRESOLVED):
        return ()
    return tuple(a for a in task.verify.assertions if not holds(a, trial.metrics.get(a.metric)))


def _counts(lines: Sequence[TrialLine], missing: int) -> Counts:
    scored = [line for line in lines if line.outcome.weight is Weight.SCORED]
    rated = [line for line in scored if line.expect != "failed"]
    passed = sum(_passed(line) for line in scored)
    return Counts(
        trials=len(lines) + missing,
        passed=passed,
        failed=len(scored) - passed,
        void=sum(line.outcome.weight is Weight.VOID for line in lines),
        not_counted=sum(line.outcome.weight is Weight.NOT_COUNTED for line in lines),
        missing=missing,
        as_expected=sum(line.as_expected is True for line in scored),
        unexpected=sum(line.as_expected is False for line in scored),
        pass_rate=sum(_passed(line) for line in rated) / len(rated) if rated else None,
    )


def _passed(line: TrialLine) -> bool:
    return line.outcome.task is TaskState.PASSED


def _rows(run: VerifiedRun, lines: Sequence[TrialLine]) -> tuple[Row, ...]:
    own: dict[tuple[str, str], list[TrialLine]] = {}
    for line in lines:
        own.setdefault((line.task, line.target), []).append(line)
    gone = set(run.missing)
    missing = Counter((trial.task, trial.target) for trial in run.plan.trials if trial.key in gone)
    cells = [(task, (task.task, task.target)) for task in run.plan.tasks]
    return tuple(
        _row(task, own.get(cell, []), missing[cell]) for task, cell in cells if cell in own or missing[cell]
    )


def _row(task: PlannedTask, lines: Sequence[TrialLine], missing: int) -> Row:
    return Row(
        task=task.task,
        target=task.target,
        title=task.title,
        expect=task.expect,
        counts=_counts(lines, missing),
        estimates=_estimates(task, lines, len(lines) + missing),
        collected={name: tuple(line.metrics.get(name) for line in lines) for name in task.collect},
    )


def _estimates(task: PlannedTask, lines: Sequence[TrialLine], planned: int) -> Estimates:
    """k is the task's own, else as many as there are trials."""
    scored = [line for line in lines if line.outcome.weight is Weight.SCORED]
    return estimate([_passed(line) for line in scored], task.k or planned)


def _tokens(lines: Sequence[TrialLine]) -> Tokens:
    measured = [line.metrics for line in lines if line.metrics.get("tokens.measured") is True]

    def total(name: str) -> int | None:
        return sum(_whole(metrics[name]) for metrics in measured) if measured else None

    return Tokens(
        measured_runs=len(measured),
        runs=len(lines),
        input=total("tokens.input"),
        output=total("tokens.output"),
        total=total("tokens.total"),
    )


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _cost(lines: Sequence[TrialLine]) -> Cost:
    costs = [line.metrics.get("cost.usd") for line in lines]
    known = [float(cost) for cost in costs if isinstance(cost, int | float)]
    return Cost(
        known_usd=sum(known) if known else None, known_runs=len(known), unknown_runs=len(costs) - len(known)
    )


def _wall_ms(run: VerifiedRun) -> int | None:
    if run.closed_at is None or run.resumed_at:
        return None
    return max(0, (instant(run.closed_at) - instant(run.opened_at)) // timedelta(milliseconds=1))


def _threshold(condition: Assertion, lines: Iterable[TrialLine]) -> ThresholdResult:
    fired, unresolved = [], []
    for line in lines:
        if line.outcome.weight is not Weight.SCORED:
            continue
        held = holds(condition, line.metrics.get(condition.metric))
        if held is not False:
            fired.append(line.key)
        if held is None:
            unresolved.append(line.key)
    return ThresholdResult(condition=condition, fired_by=tuple(fired), unresolved=tuple(unresolved))
