"""Boxes over a graded snapshot, one after another; none sees what another wrote."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from boxeval.sandbox.box import BoxEnd
from boxeval.sandbox.images import ImageInfo
from boxeval.sandbox.job import Job
from boxeval.sandbox.slot import GRADE
from boxeval.trial.boxes import run_turn, settle_box
from boxeval.trial.context import TrialContext
from boxeval.trial.fixtures import FixtureRef
from boxeval.trial.retained import Shown
from boxeval.trial.runtime_files import runtime_layer, runtime_volumes


@dataclass(frozen=True, slots=True)
class GraderBoxes:
    """Makes boxes over the same kept layers, topmost first, over the fixture."""

    context: TrialContext
    fixture: FixtureRef
    below: tuple[str, ...]
    shown: Shown = field(default_factory=Shown)
    """What every box has beside the snapshot, read-only."""

    def run(self, role: str, image: ImageInfo, jobs: tuple[Job, ...], timeout_ms: int) -> BoxEnd:
        """Run jobs in a fresh box, in order until one fails, `timeout_ms` for all together.

        What they wrote is dropped, so that a box that fills the disk leaves it empty for the next (G20).
        """
        context, slot = self.context, self.context.slot
        workspace = slot.grader_workspace(context.trial_id, role, self.below, self.fixture.key)
        box = None
        runtime: dict[str, str] = {}
        try:
            runtime = runtime_volumes(context, GRADE, role)
            box = slot.box(
                context.trial_id,
                role,
                image,
                workspace,
                context.lifetime_s,
                read_only=self.shown.volumes,
                writable=runtime,
            )
            told = tuple(replace(job, env={**job.env, **self.shown.env}) for job in jobs)
            run_turn(box, told, timeout_ms, context.cancel)
            settle_box(box)
        finally:
            context.reaper.take(box, (workspace, *runtime.values()))
        if box.end.settled:
            for layer in (role, *(runtime_layer(role) for _ in runtime)):
                slot.keeper.request("drop_layer", name=f"{GRADE}.{layer}")
        return box.end
