"""A run from its request to its closed ledger. Whatever happens, what was made for it goes."""

from __future__ import annotations

import os
import signal
import tempfile
from contextlib import ExitStack, closing, suppress
from pathlib import Path

from boxeval.errors import BoxevalError, EngineError, StorageError
from boxeval.gateway.purse import Purse
from boxeval.gateway.server import Gateway
from boxeval.graders.examiner import Examiner
from boxeval.receipts.keys import key_of_run
from boxeval.receipts.ledger import Ledger
from boxeval.receipts.recovery import Recovery
from boxeval.run.budget import Budget, require_disk
from boxeval.run.events import RunEnd, RunRequest, Watcher
from boxeval.run.ledgers import directory_of, open_ledger
from boxeval.run.owner_lock import owned
from boxeval.run.prepare import Prepared, prepare
from boxeval.run.remember import forget
from boxeval.run.signals import Signals
from boxeval.run.watchdog import Order, Watchdog
from boxeval.run.workers import Progress, Shared, Worker, bring_back
from boxeval.sandbox.engine import Engine, connect
from boxeval.sandbox.ownership import Owner
from boxeval.sandbox.reaper import Reaper
from boxeval.sandbox.slot import Yard
from boxeval.sandbox.sweep import SOCKET, abandon, clean
from boxeval.settings import Settings, socket_parent
from boxeval.spec.plan import Plan, PlannedTask, PlannedTrial
from boxeval.spec.trial import Trial
from boxeval.trial.cancel import Cancel
from boxeval.trial.extension import ExtensionStore
from boxeval.trial.fixtures import FixtureStore

LIFETIME_S = 7 * 24 * 3600
POLL_S = 0.5


def run_suite(
    request: RunRequest,
    watcher: Watcher,
    settings: Settings,
    signals: Signals | None = None,
    recovery: Recovery | None = None,
) -> RunEnd:
    """Plan a suite, run every trial, seal every receipt; with a `recovery`, what that run has not sealed yet.

    A run that a signal ended while boxes lived returns like any other, with `interrupted_by`. Raises what keeps a run
    from being one: SuiteError, UsageError, EngineError before its first trial; StorageError when a receipt cannot be
    written; Interrupted.
    """
    signals = signals or Signals()
    if recovery and not recovery.remaining and not recovery.owes_changes:
        return _nothing_to_run(request, watcher, settings, recovery)
    with ExitStack() as stack:
        engine = connect()
        stack.callback(engine.close)
        engine.require_overlay_volumes()
        owner = Owner.here(settings.data_dir)
        _sweep(engine, owner, watcher)
        prepared = prepare(request, engine, settings, watcher, recovery)
        directory = recovery.directory if recovery else directory_of(request, settings, prepared.plan.run_id)
        if prepared.plan.case:
            stack.enter_context(owned(directory.parent, prepared.plan, owner, watcher.note))
        require_disk(directory, prepared.jobs, prepared.plan.policies.values(), engine.facts.root_dir)
        stack.enter_context(signals.draining())
        ledger = open_ledger(request, settings, prepared.plan, directory, recovery)
        stack.callback(ledger.release)
        _announce(prepared, ledger.directory, recovery, watcher)
        purse = _purse(prepared.plan, recovery)
        stack.callback(prepared.models.close)
        ledger.blobs.redact = prepared.models.redactor
        session = recovery.times + 2 if recovery else 1
        yard, gateway, watchdog = _open(stack, engine, owner, prepared, settings, watcher, session, purse)
        run = _Run(prepared, yard, gateway, purse, ledger, watcher, signals, recovery)
        end = run.go(settings, request.max_failures)
        if watchdog and not end.left_behind:
            watchdog.dismiss()
        if end.checkpoint and not run.left_over:
            forget(settings, end.run_id)
        return end


def _open(
    stack: ExitStack,
    engine: Engine,
    owner: Owner,
    prepared: Prepared,
    settings: Settings,
    watcher: Watcher,
    session: int,
    purse: Purse,
) -> tuple[Yard, Gateway, Watchdog | None]:
    """What the boxes of a run share. The watchdog is there before the first of them, and stays longer than the last."""
    run_id = prepared.plan.run_id
    gateway_dir = Path(
        stack.enter_context(tempfile.TemporaryDirectory(prefix="boxeval-", dir=socket_parent()))
    )
    watchdog = None
    try:
        watchdog = Watchdog(Order(run_id, owner.home, owner.boot, owner.controller, str(gateway_dir)))
        stack.callback(watchdog.leave)
    except OSError as error:
        watcher.note(
            f"warning: no watchdog can be started: {error}; if this process is killed: boxeval clean"
        )
    gateway = stack.enter_context(Gateway(gateway_dir / SOCKET, prepared.models, purse))
    yard = Yard(
        engine=engine,
        owner=owner,
        run_id=run_id,
        keeper_image=prepared.keeper,
        cache_dir=settings.cache_dir,
        gateway_dir=gateway_dir,
        lifetime_s=LIFETIME_S,
        session=session,
    )
    return yard, gateway, watchdog


def _purse(plan: Plan, recovery: Recovery | None) -> Purse:
    """What the run may spend of its models; void attempts of an earlier session have cost money too."""
    purse = Purse(plan.budget, plan.max_cost_usd, of_run=True)
    for trial in recovery.run.trials if recovery else ():
        if traffic := trial.observations.traffic:
            purse.take(traffic)
    return purse


def _announce(prepared: Prepared, directory: Path, recovery: Recovery | None, watcher: Watcher) -> None:
    plan = prepared.plan
    if recovery:
        all_trials, plan = len(plan.trials), plan.model_copy(update={"trials": recovery.remaining})
        watcher.note(
            f"going on with {plan.run_id}: {len(plan.trials)} of {all_trials} trials have no verdict yet"
        )
    watcher.planned(plan, directory, prepared.jobs)


def _nothing_to_run(request: RunRequest, watcher: Watcher, settings: Settings, recovery: Recovery) -> RunEnd:
    """Close a run whose trials all have their verdicts, unless that was done. If there is an engine, it is swept."""
    with suppress(EngineError), closing(connect()) as engine:
        _sweep(engine, Owner.here(settings.data_dir), watcher)
    run_id = recovery.run.plan.run_id
    if recovery.is_over:
        checkpoint = recovery.renew_checkpoint()
    else:
        checkpoint = recovery.go_on(key_of_run(settings, recovery.run.keyid, request.key_file)).close()
    forget(settings, run_id)
    return RunEnd(run_id, recovery.directory, checkpoint)


def _sweep(engine: Engine, owner: Owner, watcher: Watcher) -> None:
    """What an earlier run left goes; what will not go keeps nobody from running."""
    try:
        if swept := clean(engine, owner):
            watcher.note(f"removed {len(swept)} objects that an earlier run left behind")
    except EngineError as error:
        watcher.note(f"warning: not all that an earlier run left could be removed: {error}")


class _Run:
    """The part of a run in which boxes live."""

    def __init__(
        self,
        prepared: Prepared,
        yard: Yard,
        gateway: Gateway,
        purse: Purse,
        ledger: Ledger,
        watcher: Watcher,
        signals: Signals,
        recovery: Recovery | None,
    ) -> None:
        self._prepared, self._ledger, self._watcher, self._signals = prepared, ledger, watcher, signals
        self._yard, self._gateway, self._purse, self._recovery = yard, gateway, purse, recovery
        self._trials = recovery.remaining if recovery else prepared.plan.trials
        self._cancel, self._reaper = Cancel(), Reaper(yard.engine)
        self.left_over = True
        """Whether a resumed run would have something to do."""

    def go(self, settings: Settings, max_failures: int | None) -> RunEnd:
        """Run all trials, then close the ledger."""
        with Examiner(lambda: self._cancel.is_set) as examiner:
            return self._go(settings, max_failures, examiner)

    def _go(self, settings: Settings, max_failures: int | None, examiner: Examiner) -> RunEnd:
        plan = self._prepared.plan
        budget = Budget(self._ledger.directory, plan.policies, self._purse)
        shared = Shared(
            plan=plan,
            directory=self._prepared.directory,
            yard=self._yard,
            ledger=self._ledger,
            watcher=self._watcher,
            images=self._prepared.images,
            fixtures=FixtureStore(
                self._prepared.sources,
                plan.run_id,
                self._prepared.images.get("boxeval/grader"),
                self._prepared.seeds,
            ),
            extensions=ExtensionStore(self._prepared.extensions),
            gateway=self._gateway,
            reaper=self._reaper,
            cancel=self._cancel,
            budget=budget,
            attempts=self._recovery.attempts if self._recovery else {},
            examiner=examiner,
            ambient=None if settings.hermetic else dict(os.environ),
            max_failures=max_failures,
        )
        for trial in self._recovery.run.trials if self._recovery else ():
            # A controller that died between a seal and its write-back owes it.
            bring_back(shared, trial, self._task_of(trial))
        progress = Progress(shared)
        finished = self._work(shared, progress)
        if not finished:
            return self._at_once()
        if progress.error is not None:
            self._remove_all()
            raise _as_ours(progress.error)
        if progress.stopped_because:
            self._watcher.note(f"stopped: {progress.stopped_because}")
        name = signal.Signals(self._signals.first).name if self._signals.first else None
        checkpoint = self._ledger.close(name)
        self.left_over = progress.settled < len(self._trials)
        return self._end(checkpoint, self._remove_all())

    def _task_of(self, trial: Trial) -> PlannedTask:
        return next(
            task
            for task in self._prepared.plan.tasks
            if (task.task, task.target) == (trial.task, trial.target)
        )

    def _work(self, shared: Shared, progress: Progress) -> bool:
        """Shared trials by all workers, then exclusive ones by one. False if a second signal cut it short."""
        exclusive = {(task.task, task.target) for task in shared.plan.tasks if task.exclusive}

        def alone(trial: PlannedTrial) -> bool:
            return (trial.task, trial.target) in exclusive

        together = tuple(trial for trial in self._trials if not alone(trial))
        one_by_one = tuple(trial for trial in self._trials if alone(trial))
        first = 0
        for trials, count in ((together, self._prepared.jobs), (one_by_one, 1)):
            progress.fill(trials)
            workers = [Worker(first + n, shared, progress) for n in range(min(count, len(trials)))]
            first += len(workers)
            for worker in workers:
                worker.start()
            if not self._wait(workers, progress):
                return False
        return True

    def _wait(self, workers: list[Worker], progress: Progress) -> bool:
        while any(worker.is_alive() for worker in workers):
            for worker in workers:
                worker.join(POLL_S / len(workers))
            if progress.error is not None and not self._cancel.is_set:
                self._cancel.set()
            if self._signals.count >= 1 and not self._cancel.is_set:
                self._watcher.note("stopping: running trials are ended and sealed; once more stops at once")
                self._cancel.set()
            if self._hurried():
                return False
        return True

    def _hurried(self) -> bool:
        return self._signals.count >= 2

    def _at_once(self) -> RunEnd:
        """A second signal: do not wait for seals; take down all that is ours by its labels."""
        return self._end(None, self._abandon())

    def _remove_all(self) -> tuple[str, ...]:
        """Let the reaper finish, then take what is left by its labels: what an engine made after we gave up on it,
        and what it would not remove before. One line for each thing that stays.
        """
        left = self._reaper.drain(self._hurried)
        return (*left, *still) if (still := self._abandon()) else ()

    def _abandon(self) -> tuple[str, ...]:
        if self._hurried():
            self._yard.engine.hurry()
        try:
            abandon(self._yard.engine, self._yard.owner, self._yard.run_id)
        except BoxevalError as error:
            return (str(error),)
        return ()

    def _end(self, checkpoint: str | None, left: tuple[str, ...]) -> RunEnd:
        return RunEnd(
            run_id=self._prepared.plan.run_id,
            directory=self._ledger.directory,
            checkpoint=checkpoint,
            interrupted_by=self._signals.first,
            left_behind=left,
        )


def _as_ours(error: BaseException) -> BaseException:
    return StorageError(str(error)) if isinstance(error, OSError) else error
