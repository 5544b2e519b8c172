"""What the steps of a trial share: the trial's place in the plan, its slot, its run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from boxeval.gateway.server import Gateway
from boxeval.graders.examiner import Examiner
from boxeval.receipts.blobs import BlobStore
from boxeval.sandbox.images import ImageInfo
from boxeval.sandbox.reaper import Reaper
from boxeval.sandbox.slot import Slot
from boxeval.spec.outcome import FailureClass
from boxeval.spec.plan import PlannedImage, PlannedTask, PlannedTrial
from boxeval.trial.cancel import Cancel
from boxeval.trial.extension import ExtensionStore
from boxeval.trial.fault import StageFault
from boxeval.trial.fixtures import FixtureStore


class Steps:
    """Wall time of each step, in whole milliseconds, by a monotonic clock; one taken again adds up."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self.took_ms: dict[str, int] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time what is inside and tell the watcher that it began."""
        self._tell(name)
        began = time.monotonic_ns()
        try:
            yield
        finally:
            took_ms = (time.monotonic_ns() - began) // 1_000_000
            self.took_ms[name] = self.took_ms.get(name, 0) + took_ms


@dataclass(frozen=True, slots=True)
class TrialContext:
    """All that one trial needs from its run.

    `ambient` is the controller's environment if it is let in (V3).
    """

    planned: PlannedTrial
    task: PlannedTask
    slot: Slot
    images: Mapping[str, ImageInfo]
    planned_images: Mapping[str, PlannedImage]
    fixtures: FixtureStore
    extensions: ExtensionStore
    blobs: BlobStore
    gateway: Gateway
    reaper: Reaper
    cancel: Cancel
    steps: Steps
    examiner: Examiner
    ambient: Mapping[str, str] | None = None

    @property
    def trial_id(self) -> str:
        """The planned trial's id."""
        return self.planned.trial_id

    @property
    def lifetime_s(self) -> float:
        """How long a box of this trial may exist before a sweep may take it."""
        task = self.task
        steps_ms = sum(step.timeout_ms + step.verify_timeout_ms for step in task.steps)
        return (task.agent_timeout_ms + task.grader_timeout_ms + steps_ms) / 1000 + 900

    def image(self, name: str) -> ImageInfo:
        """A resolved image. Why it could not be had was found out when the run was planned."""
        try:
            return self.images[name]
        except KeyError:
            why = self.planned_images[name].fault if name in self.planned_images else None
            raise StageFault(FailureClass.COMMAND_ERROR, f"image {why or name}"[:300]) from None
