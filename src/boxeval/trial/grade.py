"""Step 6: a second box over the kept layers. What was collected and hashed is what is graded."""

from __future__ import annotations

from boxeval.agents.environment import grader_environment
from boxeval.formats.fixtures import inline_fixture
from boxeval.sandbox.job import Job, shell
from boxeval.sandbox.settings import MIB
from boxeval.sandbox.slot import GRADE
from boxeval.spec.trial import BoxResult
from boxeval.trial.boxes import box_result, run_turn, settle_box
from boxeval.trial.context import TrialContext
from boxeval.trial.stage import AGENT_LAYER, Staged

FILES = "files"


def grade(context: TrialContext, staged: Staged) -> tuple[BoxResult | None, BoxResult | None]:
    """Run `verify.measure`, then `verify.commands`, each in a box of its own; None where there is none."""
    verify = context.task.verify
    below = [AGENT_LAYER]
    if verify.files and (verify.measure or verify.commands):
        _plant_files(context)
        below.insert(0, f"{GRADE}.{FILES}")
    measure = _run(context, staged, below, "measure", (verify.measure,)) if verify.measure else None
    commands = _run(context, staged, below, "grader", verify.commands) if verify.commands else None
    return measure, commands


def _plant_files(context: TrialContext) -> None:
    """`verify.files` become a layer of their own, above everything that the candidate left."""
    slot = context.slot
    slot.keeper.request("layer", name=f"{GRADE}.{FILES}", uid=slot.policy.uid, gid=slot.policy.gid)
    files = inline_fixture(context.task.verify.files, slot.policy.limits.workspace_mib * MIB)
    slot.keeper.fill_layer(f"{GRADE}.{FILES}", slot.policy, files.entries())


def _run(
    context: TrialContext, staged: Staged, below: list[str], role: str, commands: tuple[str, ...]
) -> BoxResult:
    image = context.image(context.task.grader_image)
    env = grader_environment(context.task, image.path_env, ambient=context.ambient)
    workspace = context.slot.grader_workspace(context.trial_id, role, below, staged.fixture.key)
    box = None
    try:
        box = context.slot.box(context.trial_id, role, image, workspace, context.lifetime_s)
        jobs = tuple(Job(shell(command), env) for command in commands)
        run_turn(box, jobs, context.task.grader_timeout_ms, context.cancel)
        settle_box(box)
    finally:
        context.reaper.take(box, (workspace,))
    return box_result(box.end, context.blobs)
