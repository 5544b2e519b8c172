"""Step 6: a second box over the kept layers. What was collected and hashed is what is graded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from boxeval.agents.environment import grader_environment
from boxeval.formats.fixtures import inline_fixture
from boxeval.sandbox.job import Job, shell
from boxeval.sandbox.settings import MIB
from boxeval.sandbox.slot import GRADE
from boxeval.spec.box import BoxResult
from boxeval.spec.workspace import InlineFile
from boxeval.trial.boxes import box_result, run_turn, settle_box
from boxeval.trial.context import TrialContext
from boxeval.trial.fixtures import FixtureRef
from boxeval.trial.stage import Turn


def grade(
    context: TrialContext, fixture: FixtureRef, layers: Sequence[str]
) -> tuple[BoxResult | None, BoxResult | None]:
    """Run `verify.measure`, then `verify.commands`, each in a box of its own; None where there is none."""
    verify, timeout_ms = context.task.verify, context.task.grader_timeout_ms
    below = tuple(layers)
    if verify.files and (verify.measure or verify.commands):
        below = (_plant(context, "files", verify.files), *below)
    boxes = _Graders(context, fixture, below)
    measure = boxes.run("measure", (verify.measure,), timeout_ms) if verify.measure else None
    commands = boxes.run("grader", verify.commands, timeout_ms) if verify.commands else None
    return measure, commands


def check_step(context: TrialContext, fixture: FixtureRef, layers: Sequence[str], turn: Turn) -> BoxResult:
    """Run a step's own check over what the steps up to it have left."""
    step = turn.step
    if step is None or step.verify is None:
        raise ValueError(f"{turn.name} has no check")
    below = tuple(layers)
    if step.verify.files:
        below = (_plant(context, f"{turn.name}-files", step.verify.files), *below)
    graders = _Graders(context, fixture, below)
    return graders.run(f"{turn.name}-check", step.verify.commands, step.verify_timeout_ms)


def _plant(context: TrialContext, name: str, files: Mapping[str, str | InlineFile]) -> str:
    """`verify.files` become a layer of their own, above everything that the candidate left. Returns its name."""
    slot, layer = context.slot, f"{GRADE}.{name}"
    slot.keeper.request("layer", name=layer, uid=slot.policy.uid, gid=slot.policy.gid)
    planted = inline_fixture(dict(files), slot.policy.limits.workspace_mib * MIB)
    slot.keeper.fill_layer(layer, slot.policy, planted.entries())
    return layer


@dataclass(frozen=True, slots=True)
class _Graders:
    """Makes boxes over the same kept layers, topmost first, over the fixture."""

    context: TrialContext
    fixture: FixtureRef
    below: tuple[str, ...]

    def run(self, role: str, commands: tuple[str, ...], timeout_ms: int) -> BoxResult:
        """Run commands in a fresh box, `timeout_ms` for all together."""
        context = self.context
        image = context.image(context.task.grader_image)
        env = grader_environment(context.task, image.path_env, ambient=context.ambient)
        workspace = context.slot.grader_workspace(context.trial_id, role, self.below, self.fixture.key)
        box = None
        try:
            box = context.slot.box(context.trial_id, role, image, workspace, context.lifetime_s)
            jobs = tuple(Job(shell(command), env) for command in commands)
            run_turn(box, jobs, timeout_ms, context.cancel)
            settle_box(box)
        finally:
            context.reaper.take(box, (workspace,))
        return box_result(box.end, context.blobs)
