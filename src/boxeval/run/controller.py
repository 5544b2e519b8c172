"""A run from its request to its closed ledger. Whatever happens, what was made for it goes."""

from __future__ import annotations

import os
import signal
import tempfile
from contextlib import ExitStack
from pathlib import Path

from boxeval.errors import BoxevalError, EngineError, StorageError
from boxeval.gateway.server import Gateway
from boxeval.receipts.keys import load_signing_key
from boxeval.receipts.ledger import Ledger
from boxeval.run.events import RunEnd, RunRequest, Watcher
from boxeval.run.prepare import Prepared, prepare
from boxeval.run.signals import Signals, watched
from boxeval.run.workers import Progress, Shared, Worker
from boxeval.sandbox.engine import Engine, connect
from boxeval.sandbox.ownership import Owner
from boxeval.sandbox.reaper import Reaper
from boxeval.sandbox.slot import Yard
from boxeval.sandbox.sweep import SOCKET, abandon, clean
from boxeval.settings import Settings, socket_parent
from boxeval.spec.plan import PlannedTrial
from boxeval.trial.cancel import Cancel
from boxeval.trial.fixtures import FixtureStore

LIFETIME_S = 7 * 24 * 3600
POLL_S = 0.5


def run_suite(request: RunRequest, watcher: Watcher, settings: Settings) -> RunEnd:
    """Plan a suite, run every trial, seal every receipt.

    A run that a signal ended returns like any other, with `interrupted_by`. Raises what keeps a run from being one:
    SuiteError, UsageError, EngineError before its first trial; StorageError when a receipt cannot be written.
    """
    with ExitStack() as stack:
        engine = connect()
        stack.callback(engine.close)
        engine.require_overlay_volumes()
        owner = Owner.here(settings.data_dir)
        _sweep(engine, owner, watcher)
        prepared = prepare(request, engine, settings, watcher)
        # Until here a signal ends the process as it always does: nothing has been made yet.
        signals = stack.enter_context(watched())
        directory = request.out or settings.runs_dir / prepared.plan.run_id
        key = load_signing_key(settings, request.key_file or settings.key_file)
        ledger = Ledger.create(directory, prepared.plan, key)
        watcher.planned(prepared.plan, directory, prepared.jobs)
        gateway_dir = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="boxeval-", dir=socket_parent()))
        )
        gateway = stack.enter_context(Gateway(gateway_dir / SOCKET))
        yard = Yard(
            engine=engine,
            owner=owner,
            run_id=prepared.plan.run_id,
            keeper_image=prepared.keeper,
            cache_dir=settings.cache_dir,
            gateway_dir=gateway_dir,
            lifetime_s=LIFETIME_S,
        )
        return _Run(prepared, yard, gateway, ledger, watcher, signals, request.max_failures).go(settings)


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
        ledger: Ledger,
        watcher: Watcher,
        signals: Signals,
        max_failures: int | None,
    ) -> None:
        self._prepared, self._ledger, self._watcher, self._signals = prepared, ledger, watcher, signals
        self._yard, self._gateway, self._max_failures = yard, gateway, max_failures
        self._cancel, self._reaper = Cancel(), Reaper(yard.engine)

    def go(self, settings: Settings) -> RunEnd:
        """Run all trials, then close the ledger."""
        plan = self._prepared.plan
        shared = Shared(
            plan=plan,
            directory=self._prepared.directory,
            yard=self._yard,
            ledger=self._ledger,
            watcher=self._watcher,
            images=self._prepared.images,
            fixtures=FixtureStore(
                self._prepared.sources, plan.run_id, self._prepared.images.get("boxeval/grader")
            ),
            gateway=self._gateway,
            reaper=self._reaper,
            cancel=self._cancel,
            ambient=None if settings.hermetic else dict(os.environ),
            max_failures=self._max_failures,
        )
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
        return self._end(checkpoint, self._remove_all())

    def _work(self, shared: Shared, progress: Progress) -> bool:
        """Shared trials by all workers, then exclusive ones by one. False if a second signal cut it short."""
        exclusive = {(task.task, task.target) for task in shared.plan.tasks if task.exclusive}

        def alone(trial: PlannedTrial) -> bool:
            return (trial.task, trial.target) in exclusive

        together = tuple(trial for trial in shared.plan.trials if not alone(trial))
        one_by_one = tuple(trial for trial in shared.plan.trials if alone(trial))
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
