"""Which part of a suite runs, and what applies to a task on a target: its own, the target's, the default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from boxeval.errors import UsageError
from boxeval.spec.checks import JudgedCheck
from boxeval.spec.extension_use import COMMANDS
from boxeval.spec.metrics import did_you_mean
from boxeval.spec.models import PlannedModel
from boxeval.spec.plan import PlannedStep
from boxeval.spec.suite import RunnerKind, Suite, Target, Task, Verify

DEFAULT_IMAGE = "boxeval/base"
GRADER_IMAGE = "boxeval/grader"
DEFAULT_POLICY = "default"
DEFAULT_TIMEOUT_MS = 60_000


@dataclass(frozen=True, slots=True)
class Selection:
    """Filters of a run. Empty ones select everything; several values of one filter are alternatives."""

    targets: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    smoke: bool = False

    def described(self) -> dict[str, str]:
        """The filters that are on, for the plan."""
        lists = {"target": self.targets, "task": self.tasks, "tag": self.tags}
        texts = {name: ",".join(values) for name, values in lists.items() if values}
        return texts | ({"smoke": "true"} if self.smoke else {})


def select(suite: Suite, selection: Selection) -> tuple[tuple[Target, ...], tuple[Task, ...]]:
    """Targets and tasks that run, in order. Raises `UsageError` for unknown names or if none is left."""
    _known("target", selection.targets, [target.id for target in suite.matrix.targets])
    _known("task", selection.tasks, [task.id for task in suite.tasks])
    _known("tag", selection.tags, sorted({tag for task in suite.tasks for tag in task.tags}))
    targets = tuple(t for t in suite.matrix.targets if not selection.targets or t.id in selection.targets)
    tasks = tuple(
        task
        for task in suite.tasks
        if (not selection.tasks or task.id in selection.tasks)
        and (not selection.tags or set(task.tags) & set(selection.tags))
        and (not selection.smoke or task.smoke)
    )
    if not tasks:
        filters = ", ".join(f"--{name} {value}" for name, value in selection.described().items())
        raise UsageError(f"no task is selected by {filters.replace('--smoke true', '--smoke')}")
    return targets, tasks


def image_of(suite: Suite, task: Task, target: Target) -> str:
    """Image of the candidate's box."""
    return _named_image(suite, task, target) or DEFAULT_IMAGE


def grader_image_of(suite: Suite, task: Task, target: Target) -> str:
    """Image of the grader's box: its own, else the candidate's if that was named, else boxeval's."""
    return task.verify.image or _named_image(suite, task, target) or GRADER_IMAGE


def policy_of(suite: Suite, task: Task, target: Target) -> str:
    """Name of the policy of both boxes."""
    return task.policy or target.policy or suite.defaults.policy or DEFAULT_POLICY


def timeouts_of(suite: Suite, task: Task) -> tuple[int, int]:
    """Deadlines in milliseconds: the candidate's turn, and all commands of the grader together."""
    whole = task.timeout_ms or suite.defaults.timeout_ms or DEFAULT_TIMEOUT_MS
    return min(task.runner.timeout_ms or whole, whole), task.verify.timeout_ms or whole


def steps_of(suite: Suite, task: Task) -> tuple[PlannedStep, ...]:
    """The steps of a task, each with a runner of its own, with what applies if it says nothing."""
    turn_ms, check_ms = timeouts_of(suite, task)
    return tuple(
        PlannedStep(
            id=step.id,
            runner=task.runner.model_copy(
                update={
                    "kind": RunnerKind.SCRIPTED if step.command is None else RunnerKind.EXTERNAL_COMMAND,
                    "prompt": step.prompt,
                    "command": step.command,
                    "timeout_ms": None,
                }
            ),
            writes=task.writes if step.writes is None else step.writes,
            timeout_ms=min(step.timeout_ms or turn_ms, turn_ms),
            verify=step.verify,
            verify_timeout_ms=(step.verify and step.verify.timeout_ms) or check_ms,
        )
        for step in task.steps
    )


def asks_a_model(task: Task) -> bool:
    """Whether a turn of the task is the reference agent's."""
    if task.steps:
        return any(step.command is None for step in task.steps)
    return task.runner.kind is RunnerKind.SCRIPTED


def model_of(
    suite: Suite, task: Task, target: Target, models: Mapping[str, PlannedModel], model: str | None
) -> PlannedModel | None:
    """The model of a task: its own script, else `model` (an override), the target's or the defaults'."""
    if not asks_a_model(task):
        return None
    if task.runner.script is not None:
        return models[f"task:{task.id}"]
    name = model or target.model or suite.defaults.model
    if name is None or name not in models:
        hint = did_you_mean(name or "", models)
        raise UsageError(f"there is no model `{name}` for task `{task.id}` on target `{target.id}`{hint}")
    return models[name]


def judge_of(
    suite: Suite, task: Task, models: Mapping[str, PlannedModel], judge: str | None
) -> PlannedModel | None:
    """The judge of a task, if a check of it needs one: `judge` (an override), its own, or the defaults'."""
    needs = [check for check in without_replaced(task.verify).checks if isinstance(check, JudgedCheck)]
    if not needs:
        return None
    name = judge or task.verify.judge or suite.defaults.judge
    if name is None:
        raise UsageError(
            f"task `{task.id}`: check `{needs[0].id}` needs a judge; name a model with `defaults.judge`, "
            "`verify.judge` or --judge"
        )
    if name not in models:
        raise UsageError(f"there is no model `{name}` to judge task `{task.id}`{did_you_mean(name, models)}")
    return models[name]


def without_replaced(verify: Verify) -> Verify:
    """What is left of the built-in graders beside an extension that takes the place of some."""
    replaced = verify.extension.replaces if verify.extension else ()
    if not replaced:
        return verify
    checks = tuple(check for check in verify.checks if check.grader not in replaced)
    return verify.model_copy(
        update={"checks": checks, "commands": () if COMMANDS in replaced else verify.commands}
    )


def _named_image(suite: Suite, task: Task, target: Target) -> str | None:
    return task.image or target.image or suite.defaults.image


def _known(what: str, wanted: tuple[str, ...], known: list[str]) -> None:
    for name in wanted:
        if name not in known:
            listed = ", ".join(f"`{item}`" for item in known) or "none"
            raise UsageError(f"there is no {what} `{name}`{did_you_mean(name, known)} (known: {listed})")
