"""Step 6: a second box over the kept layers, and more for checks. What was collected and hashed is what is graded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from boxeval.agents.environment import grader_environment
from boxeval.formats.fixtures import inline_fixture
from boxeval.graders.registry import grade_all
from boxeval.rules.protect import caches_beside
from boxeval.sandbox.job import Job, shell
from boxeval.sandbox.settings import MIB
from boxeval.sandbox.slot import GRADE
from boxeval.spec.box import BoxResult
from boxeval.spec.trial import Observations
from boxeval.spec.workspace import InlineFile
from boxeval.trial.bench import TrialBench
from boxeval.trial.boxes import box_result
from boxeval.trial.context import TrialContext
from boxeval.trial.extension import TrialExtension
from boxeval.trial.fixtures import FixtureRef
from boxeval.trial.grader_boxes import GraderBoxes
from boxeval.trial.retained import shown_to_graders
from boxeval.trial.stage import Turn


def grade(
    context: TrialContext,
    fixture: FixtureRef,
    layers: Sequence[str],
    seen: Observations,
    base: str | None,
    extension: TrialExtension | None = None,
) -> Observations:
    """`verify.measure`, then `verify.commands`, each in a box of its own, then every check, into the observations.

    Last the extension, which is told of all of them. `base` is HEAD before the candidate ran, if a check asks for it.
    """
    with shown_to_graders(context, seen.agent_record) as shown:
        return _grade(GraderBoxes(context, fixture, tuple(layers), shown), seen, base, extension)


def _grade(
    boxes: GraderBoxes, seen: Observations, base: str | None, extension: TrialExtension | None
) -> Observations:
    context, below = boxes.context, boxes.below
    verify, timeout_ms = context.task.verify, context.task.grader_timeout_ms
    if verify.files and (verify.measure or verify.commands or verify.checks or extension):
        below = (_plant(context, "files", verify.files), *below)
        boxes = replace(boxes, below=below)
    measure = _run(boxes, "measure", (verify.measure,), timeout_ms) if verify.measure else None
    commands = _run(boxes, "grader", verify.commands, timeout_ms) if verify.commands else None
    bench = TrialBench(boxes, seen.message, base)
    try:
        checks = grade_all(verify.checks, bench)
    finally:
        judge_traffic = bench.judge_of_trial.close()
    seen = seen.model_copy(
        update={
            "measure": measure,
            "grader": commands,
            "checks": checks,
            "judged": bench.judge_of_trial.judged,
            "judge_traffic": judge_traffic,
            "git_head": bench.git_head_if_read,
        }
    )
    judged = extension.evaluate(seen, below) if extension else None
    return seen.model_copy(update={"extension": judged, "cancelled": context.cancel.is_set})


def check_step(context: TrialContext, fixture: FixtureRef, layers: Sequence[str], turn: Turn) -> BoxResult:
    """Run a step's own check over what the steps up to it have left."""
    step = turn.step
    if step is None or step.verify is None:
        raise ValueError(f"{turn.name} has no check")
    below = tuple(layers)
    if step.verify.files:
        below = (_plant(context, f"{turn.name}-files", step.verify.files), *below)
    boxes = GraderBoxes(context, fixture, below)
    return _run(boxes, f"{turn.name}-check", step.verify.commands, step.verify_timeout_ms)


def _run(boxes: GraderBoxes, role: str, commands: tuple[str, ...], timeout_ms: int) -> BoxResult:
    context = boxes.context
    image = context.image(context.task.grader_image)
    env = grader_environment(context.task, image.path_env, ambient=context.ambient)
    jobs = tuple(Job(shell(command), env) for command in commands)
    end = boxes.run(role, image, jobs, timeout_ms)
    keep = None if context.task.verify.evidence == "kept" else 0
    return box_result(end, context.blobs, keep_bytes=keep)


def _plant(context: TrialContext, name: str, files: Mapping[str, str | InlineFile]) -> str:
    """`verify.files` become a layer of their own, above everything that the candidate left. Returns its name.

    Python would load a module that is cached beside its source instead of it, so the caches there are hidden.
    """
    slot, layer = context.slot, f"{GRADE}.{name}"
    slot.keeper.request("layer", name=layer, uid=slot.policy.uid, gid=slot.policy.gid)
    planted = inline_fixture(dict(files), slot.policy.limits.workspace_mib * MIB)
    caches = caches_beside([entry.path for entry in planted.entries()])
    slot.keeper.fill_layer(layer, slot.policy, planted.entries(), caches)
    return layer
