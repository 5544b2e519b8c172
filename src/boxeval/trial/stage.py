"""Step 1: the fixture below an overlay, and for each turn a box over it that is created but not started.

Each turn writes to a layer of its own, over the layers of the turns before it, so its changes are that layer alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from boxeval.agents.registry import keeps_state
from boxeval.formats.boundaries import Boundaries, fixture_faults
from boxeval.formats.place import dotted
from boxeval.sandbox.box import Box
from boxeval.sandbox.slot import AGENT
from boxeval.spec.outcome import FailureClass
from boxeval.spec.plan import PlannedStep, PlannedTask
from boxeval.spec.workspace import WorkspaceKind
from boxeval.trial.context import TrialContext
from boxeval.trial.fault import StageFault
from boxeval.trial.fixtures import FixtureRef, Making
from boxeval.trial.runtime_files import runtime_volumes


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn to take. `task` is the trial's, with the runner and the deadline of this turn.

    `name` is that of its box and its layer; `step` is None for the single turn of a task without steps.
    """

    name: str
    task: PlannedTask
    step: PlannedStep | None = None
    is_first: bool = True

    @property
    def layer(self) -> str:
        """What the turn writes, as the keeper names it."""
        return f"{AGENT}.{self.name}"


@dataclass(frozen=True, slots=True)
class Staged:
    """A candidate that is ready to start. `below` are the layers of the turns before, topmost first."""

    fixture: FixtureRef
    turn: Turn
    below: tuple[str, ...]
    workspace: str
    box: Box


def turns_of(task: PlannedTask) -> tuple[Turn, ...]:
    """All turns of a task, in order."""
    if not task.steps:
        return (Turn("agent", task),)
    return tuple(
        Turn(
            f"step{number}",
            task.model_copy(
                update={"runner": step.runner, "writes": step.writes, "agent_timeout_ms": step.timeout_ms}
            ),
            step,
            number == 1,
        )
        for number, step in enumerate(task.steps, start=1)
    )


def stage_fixture(context: TrialContext) -> FixtureRef:
    """Reset the slot and have the task's fixture. After a StageFault or EngineError nothing of it is left."""
    slot, task = context.slot, context.task
    slot.reset()
    image = context.image(task.image)
    context.image(task.grader_image)
    making = Making(slot, image, context.reaper, context.cancel)
    fixture = context.fixtures.ensure(task, context.trial_id, making)
    workspace = task.workspace
    if workspace.kind is WorkspaceKind.GIT or workspace.written or workspace.setup:
        _check_boundaries(context, fixture)
    return fixture


def _check_boundaries(context: TrialContext, fixture: FixtureRef) -> None:
    """What could not be checked when the run was planned, since the files were not there yet."""
    bounds = Boundaries.of(context.task)
    if not bounds.is_empty:
        entries = context.fixtures.entries(fixture, context.slot)
        for place, fault in fixture_faults(bounds, entries):
            raise StageFault(FailureClass.SETUP_FAILED, f"{dotted(place)}: {fault}")


@contextmanager
def staged(
    context: TrialContext, fixture: FixtureRef, turn: Turn, below: tuple[str, ...]
) -> Iterator[Staged]:
    """A box for one turn, removed in the background in the end."""
    slot, task = context.slot, context.task
    box = None
    with context.steps.step("stage"):
        workspace = slot.agent_workspace(context.trial_id, turn.name, fixture.key, below)
        runtime: dict[str, str] = {}
        try:
            runtime = runtime_volumes(context, AGENT, turn.name)
            box = slot.box(
                context.trial_id,
                turn.name,
                context.image(task.image),
                workspace,
                context.lifetime_s,
                shares_private=turn.step is not None or keeps_state(turn.task),
                writable=runtime,
            )
        finally:
            if box is None:
                context.reaper.take(None, (workspace, *runtime.values()))
    try:
        yield Staged(fixture, turn, below, workspace, box)
    finally:
        context.reaper.take(box, (workspace, *runtime.values()))
