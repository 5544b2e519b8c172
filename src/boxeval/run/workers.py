"""Worker slots: each takes trials from the plan, runs them one by one, and seals them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from boxeval.errors import BoxevalError, EngineError
from boxeval.gateway.server import Gateway
from boxeval.graders.examiner import Examiner
from boxeval.receipts.ledger import Ledger
from boxeval.rules.attempts import is_settled
from boxeval.run.budget import Budget
from boxeval.run.events import Watcher
from boxeval.run.ledgers import append
from boxeval.run.sessions import append_session
from boxeval.run.write_back import write_back
from boxeval.sandbox.images import ImageInfo
from boxeval.sandbox.reaper import Reaper
from boxeval.sandbox.slot import Slot, Yard
from boxeval.spec.outcome import FailureClass, TaskState, VerdictClass
from boxeval.spec.plan import Plan, PlannedTask, PlannedTrial
from boxeval.spec.trial import Observations, SetupFault, Trial
from boxeval.trial.cancel import Cancel
from boxeval.trial.context import Steps, TrialContext
from boxeval.trial.extension import ExtensionStore
from boxeval.trial.fixtures import FixtureStore
from boxeval.trial.run_trial import run_trial, seal_unstarted

ENGINE_FAULTS_IN_A_ROW = 5
"""After so many trials that the engine spoiled, one after another, the rest is not tried."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What all workers of a run use. `directory` is the suite's, where its relative paths begin."""

    plan: Plan
    directory: Path
    yard: Yard
    ledger: Ledger
    watcher: Watcher
    images: Mapping[str, ImageInfo]
    fixtures: FixtureStore
    extensions: ExtensionStore
    gateway: Gateway
    reaper: Reaper
    cancel: Cancel
    budget: Budget
    attempts: Mapping[str, int]
    """How often trials were tried before this controller, by id."""
    examiner: Examiner
    ambient: Mapping[str, str] | None
    max_failures: int | None


class Progress:
    """What the workers know of each other: what is still to do, what was spent, why to stop."""

    def __init__(self, shared: Shared) -> None:
        self._lock = threading.Lock()
        self._shared = shared
        self._queue: deque[PlannedTrial] = deque()
        self._failures = self._engine_faults = self.settled = 0
        self.stopped_because: str | None = None
        self.error: BaseException | None = None

    def fill(self, trials: tuple[PlannedTrial, ...]) -> None:
        """Put trials into the queue."""
        self._queue.extend(trials)

    @property
    def is_over(self) -> bool:
        """Whether no more trials are to be started."""
        return bool(self.stopped_because or self.error or self._shared.cancel.is_set or not self._queue)

    def next(self) -> PlannedTrial | None:
        """The next trial, or None if there is no more to do."""
        with self._lock:
            return None if self.is_over else self._queue.popleft()

    def take(self, trial: Trial) -> None:
        """Count a sealed trial."""
        task = next(t for t in self._shared.plan.tasks if (t.task, t.target) == (trial.task, trial.target))
        with self._lock:
            self.settled += is_settled((trial,))
            spoiled = trial.outcome.failure_class is FailureClass.COMMAND_ERROR
            self._engine_faults = self._engine_faults + 1 if spoiled else 0
            if self._engine_faults >= ENGINE_FAULTS_IN_A_ROW:
                self.stopped_because = (
                    f"the engine spoiled {self._engine_faults} trials in a row, last: {trial.outcome.detail}"
                )
            if trial.outcome.task is TaskState.FAILED and task.expect != "failed":
                self._failures += 1
                limit = self._shared.max_failures
                if limit is not None and self._failures >= limit:
                    self.stopped_because = f"--max-failures {limit} was reached"

    def stop(self, why: str) -> None:
        """Nothing more is started."""
        with self._lock:
            self.stopped_because = self.stopped_because or why

    def fail(self, error: BaseException) -> None:
        """Our own fault or the disk's: nothing more is started."""
        with self._lock:
            self.error = self.error or error


def bring_back(shared: Shared, trial: Trial, task: PlannedTask) -> None:
    """Apply what a passed trial changed to the operator's directory, where the suite asks for it."""
    workspace = task.workspace
    if not workspace.write_back or trial.outcome.task is not TaskState.PASSED:
        return
    place = shared.directory / (workspace.path or "")
    for line in write_back(place, trial, shared.ledger.blobs):
        shared.watcher.note(f"warning: not written back by {task.task}: {line}")


class Worker(threading.Thread):
    """One slot.

    Opens a keeper when it has something to do, and a new one when the old one cannot be trusted.
    """

    def __init__(self, number: int, shared: Shared, progress: Progress) -> None:
        super().__init__(name=f"boxeval-slot{number}", daemon=True)
        self._number, self._shared, self._progress = number, shared, progress
        self._slot: Slot | None = None
        self._opened = 0

    def run(self) -> None:
        """Work until there is nothing left."""
        try:
            while (planned := self._progress.next()) is not None:
                attempt = self._shared.attempts.get(planned.trial_id, 0) + 1
                task = self._shared.plan.task_of(planned)
                trial = self._one(planned).model_copy(update={"attempt": attempt})
                trial = append(self._shared.ledger, planned, task, trial)
                self._note_session(trial, task)
                self._shared.watcher.finished(trial)
                bring_back(self._shared, trial, task)
                self._progress.take(trial)
                if trial.outcome.verdict_class is VerdictClass.INFRA:
                    # A slot in which the engine or a kill failed is not used again.
                    self._close()
                    self._await_engine()
        except BaseException as error:
            self._progress.fail(error)
        finally:
            self._close()

    def _note_session(self, trial: Trial, task: PlannedTask) -> None:
        policy = self._shared.plan.policies[task.policy]
        append_session(self._shared.ledger.directory, trial, task, policy)

    def _one(self, planned: PlannedTrial) -> Trial:
        shared = self._shared
        steps = Steps(lambda step: shared.watcher.started(planned, step))
        task = shared.plan.task_of(planned)
        if reason := shared.budget.exhausted(task.policy):
            fault = SetupFault(failure_class=FailureClass.BUDGET_EXHAUSTED, detail=reason[:300])
            return seal_unstarted(planned, task, steps, Observations(fault=fault))
        try:
            slot = self._slot_for(task.policy)
        except EngineError as error:
            fault = SetupFault(failure_class=FailureClass.COMMAND_ERROR, detail=str(error)[:300])
            cancelled = shared.cancel.is_set
            return seal_unstarted(planned, task, steps, Observations(fault=fault, cancelled=cancelled))
        try:
            return run_trial(self._context(planned, task, slot, steps))
        except (BoxevalError, OSError):
            raise
        except Exception as error:
            # A fault of ours costs one trial, which nobody can count then; the others go on (V39).
            detail = f"run-error: {type(error).__name__}: {error}"[:300]
            fault = SetupFault(failure_class=FailureClass.COMMAND_ERROR, detail=detail)
            return seal_unstarted(planned, task, steps, Observations(fault=fault))

    def _context(self, planned: PlannedTrial, task: PlannedTask, slot: Slot, steps: Steps) -> TrialContext:
        shared = self._shared
        return TrialContext(
            planned=planned,
            task=task,
            slot=slot,
            images=shared.images,
            planned_images=shared.plan.images,
            fixtures=shared.fixtures,
            extensions=shared.extensions,
            blobs=shared.ledger.blobs,
            gateway=shared.gateway,
            reaper=shared.reaper,
            cancel=shared.cancel,
            steps=steps,
            examiner=shared.examiner,
            ambient=shared.ambient,
        )

    def _slot_for(self, policy_name: str) -> Slot:
        policy = self._shared.plan.policies[policy_name]
        if self._slot is None or self._slot.policy != policy or self._slot.is_worn:
            self._close()
            self._opened += 1
            self._slot = Slot.open(self._shared.yard, f"slot{self._number}.{self._opened}", policy)
        return self._slot

    def _close(self) -> None:
        slot, self._slot = self._slot, None
        if slot is not None:
            self._shared.reaper.close(slot)

    def _await_engine(self) -> None:
        """An engine that restarts spoils the trials that run, not all that wait."""
        cancel = self._shared.cancel
        if self._progress.is_over:
            return
        if not self._shared.yard.engine.answers(lambda: cancel.is_set) and not cancel.is_set:
            self._progress.stop("the engine does not answer any more")
