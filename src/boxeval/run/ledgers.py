"""Which ledger a run writes: a new one, or that of the run that it goes on with."""

from __future__ import annotations

from pathlib import Path

from boxeval.receipts.keys import key_of_run, load_signing_key
from boxeval.receipts.ledger import Ledger, UnsealableError
from boxeval.receipts.recovery import Recovery
from boxeval.run.events import RunRequest
from boxeval.run.remember import remember
from boxeval.settings import Settings
from boxeval.spec.outcome import FailureClass
from boxeval.spec.plan import Plan, PlannedTask, PlannedTrial
from boxeval.spec.trial import Observations, SetupFault, Trial
from boxeval.trial.context import Steps
from boxeval.trial.run_trial import seal_unstarted


def directory_of(request: RunRequest, settings: Settings, run_id: str) -> Path:
    """Where a new run goes."""
    if request.out:
        return request.out
    return ((request.case and request.case.results_root) or settings.runs_dir) / run_id


def open_ledger(
    request: RunRequest, settings: Settings, plan: Plan, directory: Path, recovery: Recovery | None
) -> Ledger:
    """A new ledger, or the one of the run that goes on; what was asked for is remembered first."""
    if recovery:
        key = key_of_run(settings, recovery.run.keyid, request.key_file)
        remember(settings, plan.run_id, request)
        return recovery.go_on(key)
    key = load_signing_key(settings, request.key_file or settings.key_file)
    ledger = Ledger.create(directory, plan, key)
    remember(settings, plan.run_id, request)
    return ledger


def append(ledger: Ledger, planned: PlannedTrial, task: PlannedTask, trial: Trial) -> Trial:
    """Seal a trial and return what stands in the ledger. `StorageError` if the disk fails.

    A record that no receipt can carry costs its trial, which nobody can count then, and not the run: what a candidate
    wrote may be in it.
    """
    try:
        ledger.append(trial)
    except UnsealableError as error:
        fault = SetupFault(failure_class=FailureClass.COMMAND_ERROR, detail=f"run-error: {error}"[:300])
        bare = seal_unstarted(planned, task, Steps(lambda _step: None), Observations(fault=fault))
        trial = bare.model_copy(update={"attempt": trial.attempt, "started_at": trial.started_at})
        ledger.append(trial)
    return trial
