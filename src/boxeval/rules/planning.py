"""From a suite to a plan: every trial by name before anything starts. Pure; names in, names out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from boxeval.errors import UsageError
from boxeval.rules.identity import identified
from boxeval.rules.selection import (
    Selection,
    grader_image_of,
    image_of,
    judge_of,
    model_of,
    policy_of,
    runner_of,
    select,
    steps_of,
    timeouts_of,
    without_replaced,
)
from boxeval.spec.case_run import CaseRun
from boxeval.spec.models import PlannedModel
from boxeval.spec.plan import Plan, PlannedImage, PlannedTask, PlannedTrial, Provenance, SuiteRef
from boxeval.spec.policy import Policy
from boxeval.spec.suite import Suite, Target, Task

__all__ = ["PlanInputs", "Selection", "check_memory", "default_jobs", "make_plan", "select"]

_MIB = 1024 * 1024
_MEMORY_SHARE = 0.75
"""Of the machine's memory that trials may claim when nobody says how many run at once."""


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """Everything that a plan depends on.

    `models` by name or `task:ID`; `policies` by the name as written; `fixture_recipes` by task and
    target; `images` by name, those of graders too; `extensions` are digests of files by task and target. `model`
    replaces the targets' models, `judge` the tasks' judges, and `repeats` every count of trials, as the
    command line asks.
    """

    run_id: str
    created_at: str
    suite: Suite
    suite_sha256: str
    file_name: str
    policies: Mapping[str, Policy]
    fixture_recipes: Mapping[tuple[str, str], str]
    images: Mapping[str, PlannedImage]
    provenance: Provenance
    models: Mapping[str, PlannedModel] = field(default_factory=dict)
    selection: Selection = field(default_factory=Selection)
    extensions: Mapping[tuple[str, str], str] = field(default_factory=dict)
    model: str | None = None
    judge: str | None = None
    repeats: int | None = None
    hermetic: bool = True
    allow_network: bool = False
    case: CaseRun | None = None


def make_plan(inputs: PlanInputs) -> Plan:
    """The plan of a run. Raises `UsageError` for a selection or an override that fits nothing."""
    suite = inputs.suite
    if inputs.model is not None and inputs.model not in suite.models:
        known = ", ".join(f"`{name}`" for name in suite.models) or "none"
        raise UsageError(f"there is no model `{inputs.model}` in the suite (known: {known})")
    targets, tasks = select(suite, inputs.selection)
    planned = tuple(plan_task(inputs, task, target) for target in targets for task in tasks)
    trials = tuple(_trials(inputs, targets, tasks))
    used = sorted({item.policy for item in planned})
    _check_hermetic(inputs, used)
    names = sorted({name for item in planned for name in (item.image, item.grader_image)})
    everything = sum(_count(inputs, task) for task in suite.tasks) * len(suite.matrix.targets)
    plan = Plan(
        run_id=inputs.run_id,
        created_at=inputs.created_at,
        suite=SuiteRef(
            id=suite.suite.id,
            title=suite.suite.title,
            visibility=str(suite.suite.visibility),
            sha256=inputs.suite_sha256,
            file=inputs.file_name,
        ),
        tasks=planned,
        trials=trials,
        policies={name: inputs.policies[name] for name in used},
        images={name: inputs.images[name] for name in names},
        thresholds=suite.thresholds.fail,
        max_cost_usd=suite.matrix.max_cost_usd,
        budget=suite.matrix.budget,
        selection=inputs.selection.described(),
        left_out=everything - len(trials),
        hermetic=inputs.hermetic,
        allow_network=inputs.allow_network,
        case=inputs.case,
        provenance=inputs.provenance,
    )
    return identified(plan)


def plan_task(inputs: PlanInputs, task: Task, target: Target) -> PlannedTask:
    """A task with everything resolved for one target; its identity depends on the whole plan."""
    suite = inputs.suite
    agent_timeout_ms, grader_timeout_ms = timeouts_of(suite, task)
    return PlannedTask(
        task=task.id,
        target=target.id,
        title=task.title,
        tags=task.tags,
        expect=task.expect,
        expect_class=task.expect_class,
        exclusive=task.exclusive,
        dry=inputs.case is not None and inputs.case.dry,
        image=image_of(suite, task, target),
        grader_image=grader_image_of(suite, task, target),
        policy=policy_of(suite, task, target),
        workspace=task.workspace,
        fixture_recipe=inputs.fixture_recipes[task.id, target.id],
        runner=runner_of(task, target),
        steps=steps_of(suite, task, target),
        writes=task.writes,
        protect=task.protect,
        faults=task.faults,
        model=model_of(suite, task, target, inputs.models, inputs.model),
        judge=judge_of(suite, task, inputs.models, inputs.judge),
        thinking=target.thinking,
        env={**target.env, **task.runner.env},
        verify=without_replaced(task.verify),
        extension_sources=inputs.extensions.get((task.id, target.id)),
        required_evidence=task.required_evidence,
        collect=task.metrics.collect,
        k=task.k,
        agent_timeout_ms=agent_timeout_ms,
        grader_timeout_ms=grader_timeout_ms,
        identity="0" * 64,
    )


def default_jobs(cpus: int, memory_bytes: int, policies: Iterable[Policy]) -> int:
    """Trials that run at once: one a core, if three quarters of the memory hold so many of the largest."""
    largest = max((policy.limits.memory_mib for policy in policies), default=1) * _MIB
    return max(1, min(cpus, int(_MEMORY_SHARE * memory_bytes) // largest))


def check_memory(jobs: int, policies: Mapping[str, Policy], memory_bytes: int) -> None:
    """Raise `UsageError` if that many trials of the largest policy are more than the machine has."""
    for name, policy in policies.items():
        limit = policy.limits.memory_mib
        if jobs * limit * _MIB > memory_bytes:
            raise UsageError(
                f"{jobs} jobs x memoryMib {limit} of policy `{name}` = {jobs * limit} MiB is more than the "
                f"machine's {memory_bytes // _MIB} MiB; lower --jobs or memoryMib"
            )


def trial_id(run_id: str, task: str, target: str, repeat: int) -> str:
    """Name of a trial, the same wherever and whenever it is computed."""
    return "t" + hashlib.sha256("\0".join((run_id, task, target, str(repeat))).encode()).hexdigest()[:15]


def _trials(inputs: PlanInputs, targets: Iterable[Target], tasks: Iterable[Task]) -> Iterable[PlannedTrial]:
    counts = {task.id: _count(inputs, task) for task in tasks}
    for repeat in range(1, max(counts.values()) + 1):
        for target in targets:
            for task, count in counts.items():
                if repeat <= count:
                    name = trial_id(inputs.run_id, task, target.id, repeat)
                    yield PlannedTrial(trial_id=name, task=task, target=target.id, repeat=repeat)


def _count(inputs: PlanInputs, task: Task) -> int:
    return inputs.repeats or task.trials or inputs.suite.matrix.repeats


def _check_hermetic(inputs: PlanInputs, used: Iterable[str]) -> None:
    for name in used:
        if not inputs.hermetic and inputs.policies[name].hermetic:
            raise UsageError(f"BOXEVAL_HERMETIC=0 is refused by policy `{name}`")
