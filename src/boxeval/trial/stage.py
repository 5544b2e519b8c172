"""Step 1: the fixture below an overlay, and a box over it that is created but not started."""

from __future__ import annotations

from dataclasses import dataclass

from boxeval.sandbox.box import Box
from boxeval.sandbox.slot import AGENT
from boxeval.trial.context import TrialContext
from boxeval.trial.fixtures import FixtureRef, Making

LAYER = "agent"
AGENT_LAYER = f"{AGENT}.{LAYER}"


@dataclass(frozen=True, slots=True)
class Staged:
    """A candidate that is ready to start."""

    fixture: FixtureRef
    workspace: str
    box: Box


def stage(context: TrialContext) -> Staged:
    """Reset the slot and stage the candidate. After a StageFault or EngineError nothing of it is left."""
    slot = context.slot
    slot.reset()
    image = context.image(context.task.image)
    context.image(context.task.grader_image)
    making = Making(slot, image, context.reaper, context.cancel)
    fixture = context.fixtures.ensure(context.task, context.trial_id, making)
    workspace = slot.agent_workspace(context.trial_id, LAYER, fixture.key)
    try:
        box = slot.box(context.trial_id, "agent", image, workspace, context.lifetime_s)
    except BaseException:
        context.reaper.take(None, (workspace,))
        raise
    return Staged(fixture, workspace, box)
