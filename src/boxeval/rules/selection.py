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
from boxeval.spec.suite import Runner, RunnerKind, Suite, Target, Task, Verify

AGENT_IMAGES = "boxeval/agents/"
"""What the names of the agents' images begin with."""
DEFAULT_IMAGE = "boxeval/base"
GRADER_IMAGE = "boxeval/grader"
DEFAULT_POLICY = "default"
DEFAULT_TIMEOUT_MS = 60_000
AGENT_TIMEOUT_MS = 600_000
"""Of a turn of an agent of others, whose model takes its time."""

_OTHER_KINDS = {"reference": RunnerKind.SCRIPTED, "command": RunnerKind.EXTERNAL_COMMAND}
_WITH_MODEL = (RunnerKind.SCRIPTED, RunnerKind.AGENT, RunnerKind.CLIO_RUN)


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
    """Image of the candidate's box: a named one, else that of its agent."""
    if named := _named_image(suite, task, target):
        return named
    agent = runner_of(task, target).agent
    return f"{AGENT_IMAGES}{agent}" if agent else DEFAULT_IMAGE


def runner_of(task: Task, target: Target) -> Runner:
    """The runner of a task with its agent. Agents that are other kinds by another name become these kinds."""
    runner = task.runner
    if runner.kind is not RunnerKind.AGENT:
        return runner
    agent = runner.agent or target.agent
    if agent is None:
        raise UsageError(f"task `{task.id}` names no agent, and neither does target `{target.id}`")
    if kind := _OTHER_KINDS.get(agent):
        return runner.model_copy(update={"kind": kind, "agent": None})
    return runner.model_copy(update={"agent": agent})


def grader_image_of(suite: Suite, task: Task, target: Target) -> str:
    """Image of the grader's box: its own, else the candidate's if that was named, else boxeval's."""
    return task.verify.image or _named_image(suite, task, target) or GRADER_IMAGE


def policy_of(suite: Suite, task: Task, target: Target) -> str:
    """Name of the policy of both boxes."""
    return task.policy or target.policy or suite.defaults.policy or DEFAULT_POLICY


def timeouts_of(suite: Suite, task: Task) -> tuple[int, int]:
    """Deadlines in milliseconds: the candidate's turn, and all commands of the grader together."""
    said = task.timeout_ms or suite.defaults.timeout_ms
    turn = said or (AGENT_TIMEOUT_MS if task.runner.kind is RunnerKind.AGENT else DEFAULT_TIMEOUT_MS)
    whole = said or DEFAULT_TIMEOUT_MS
    return min(task.runner.timeout_ms or turn, turn), task.verify.timeout_ms or whole


def steps_of(suite: Suite, task: Task, target: Target) -> tuple[PlannedStep, ...]:
    """The steps of a task, each with a runner of its own, with what applies if it says nothing."""
    turn_ms, check_ms = timeouts_of(suite, task)
    runner = runner_of(task, target)
    asked = RunnerKind.SCRIPTED if runner.kind is RunnerKind.EXTERNAL_COMMAND else runner.kind
    return tuple(
        PlannedStep(
            id=step.id,
            runner=runner.model_copy(
                update={
                    "kind": asked if step.command is None else RunnerKind.EXTERNAL_COMMAND,
                    "prompt": step.prompt,
                    "command": step.command,
                    "timeout_ms": None,
                }
            ),
            writes=task.writes if step.writes is None else step.writes,
            timeout_ms=min(step.timeout_ms or turn_ms, turn_ms),
            verify=step.verify,
            verify_timeout_ms=(step.verify and step.verify.timeout_ms) or check_ms,
            faults=step.faults,
        )
        for step in task.steps
    )


def asks_a_model(task: Task) -> bool:
    """Whether a turn of the task is that of an agent with a model."""
    if task.steps:
        return any(step.command is None for step in task.steps)
    return task.runner.kind in _WITH_MODEL and task.runner.agent != "command"


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
