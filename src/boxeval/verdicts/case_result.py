"""From a verified run of a case to its result. Like a report it is counted from what `verify` has made, alone."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from boxeval.receipts.verify import VerifiedRun
from boxeval.rules.case_states import UNSEEN, case_states, exit_code, run_states
from boxeval.rules.identity import digests, dimensions
from boxeval.spec.base import Scalar
from boxeval.spec.case_result import AppliedCondition, CaseOutcome, CaseResult, CaseTrial, CheckLine, KeptFile
from boxeval.spec.case_run import CaseRun
from boxeval.spec.outcome import Execution, TaskState
from boxeval.spec.plan import PlannedTask, PlannedTrial
from boxeval.spec.report import Report
from boxeval.spec.trial import Trial
from boxeval.verdicts.aggregate import aggregate

N = TypeVar("N", int, float)
Kept = Callable[[Trial], tuple[KeptFile | None, tuple[KeptFile, ...]]]
"""A trial's final message and its host artifacts, as files of the run's directory."""


def case_result(verified: VerifiedRun, directory: Path, kept: Kept) -> CaseResult:
    """The result of a case run; `directory` is what it names as its evidence. `ValueError` for another run."""
    run = verified.plan.case
    if run is None:
        raise ValueError("not a run of a case")
    report = aggregate(verified)
    counted = _counted(verified, report)
    cases = tuple(_case(verified, run, task, counted, kept) for task in verified.plan.tasks)
    states = run_states(cases)
    trials = [trial for case in cases for trial in case.trials]
    prepared = run.dry and verified.complete and not any(trial.failure_class for trial in trials)
    ended_by = signal.Signals[verified.interrupted_by].value if verified.interrupted_by else None
    started = any(trial.execution in (Execution.COMPLETED, Execution.FAILED) for trial in trials)
    return CaseResult(
        execution=states.execution,
        grading=states.grading,
        task=states.task,
        run_id=verified.plan.run_id,
        exit_code=exit_code(states, prepared=prepared, signal=ended_by),
        evidence_path=str(directory),
        checkpoint=verified.checkpoint,
        threshold=run.threshold,
        condition=AppliedCondition(requested=run.condition, applied=run.condition if started else None),
        candidate=run.candidate,
        semantic=run.semantic,
        cases=cases,
    )


def _counted(verified: VerifiedRun, report: Report) -> dict[str, Trial]:
    """Of each planned trial the attempt that the report counts."""
    attempts = {line.trial_id: line.attempt for line in report.trials}
    return {
        trial.trial_id: trial for trial in verified.trials if attempts.get(trial.trial_id) == trial.attempt
    }


def _case(
    verified: VerifiedRun, run: CaseRun, task: PlannedTask, counted: Mapping[str, Trial], kept: Kept
) -> CaseOutcome:
    places = [p for p in verified.plan.trials if (p.task, p.target) == (task.task, task.target)]
    trials = tuple(_trial(place, counted.get(place.trial_id), kept) for place in places)
    states = case_states(trials, run.threshold)
    passed = sum(trial.task is TaskState.PASSED for trial in trials)
    assessed = all(
        trial.execution is Execution.COMPLETED and trial.task is not TaskState.NOT_ASSESSED
        for trial in trials
    )
    return CaseOutcome(
        execution=states.execution,
        grading=states.grading,
        task=states.task,
        case_id=task.task,
        identity=task.identity,
        dimensions=digests(dimensions(verified.plan, task)),
        passed=passed,
        planned=len(trials),
        pass_rate=passed / len(trials) if assessed and trials else None,
        duration_ms=_total([trial.duration_ms for trial in trials]),
        input_tokens=_total([trial.input_tokens for trial in trials]),
        output_tokens=_total([trial.output_tokens for trial in trials]),
        cost_usd=_total([trial.cost_usd for trial in trials]),
        trials=trials,
    )


def _trial(place: PlannedTrial, trial: Trial | None, kept: Kept) -> CaseTrial:
    if trial is None:
        return CaseTrial(
            execution=UNSEEN.execution,
            grading=UNSEEN.grading,
            task=UNSEEN.task,
            trial=place.repeat,
            trial_id=place.trial_id,
            detail="there is no receipt",
            duration_ms=None,
            input_tokens=None,
            output_tokens=None,
            cost_usd=None,
        )
    outcome, metrics = trial.outcome, trial.metrics
    measured = metrics.get("tokens.measured") is True
    message, artifacts = kept(trial)
    return CaseTrial(
        execution=outcome.execution,
        grading=outcome.grading,
        task=outcome.task,
        trial=trial.repeat,
        trial_id=trial.trial_id,
        failure_class=outcome.failure_class,
        detail=outcome.detail,
        checks=tuple(_checks(trial)),
        duration_ms=trial.steps_ms.get("run"),
        input_tokens=_whole(metrics.get("tokens.input")) if measured else None,
        output_tokens=_whole(metrics.get("tokens.output")) if measured else None,
        cost_usd=_number(metrics.get("cost.usd")),
        message=message,
        artifacts=artifacts,
    )


def _checks(trial: Trial) -> Iterable[CheckLine]:
    for seen in trial.observations.graded:
        yield CheckLine(id=seen.id, grader=seen.grader, status=str(seen.status), reason=seen.reason)


def _total(values: Sequence[N | None]) -> N | None:
    """The sum; None if one is not known, or there are none."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _whole(value: Scalar) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Scalar) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
