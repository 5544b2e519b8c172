"""Reference solutions that a suite has itself, and the same suite with candidates that do nothing."""

from __future__ import annotations

from dataclasses import replace

from boxeval.formats.suite_v2 import LoadedSuite
from boxeval.spec.suite import Runner, RunnerKind, Suite, Target, Task


def has_reference(task: Task) -> bool:
    """Whether the suite says what the candidate does: commands, or a script for the model."""
    if task.runner.script is not None:
        return True
    if task.steps:
        return all(step.command is not None for step in task.steps)
    return task.runner.kind is RunnerKind.EXTERNAL_COMMAND


def idle(loaded: LoadedSuite) -> LoadedSuite:
    """The suite in which every candidate exits 0 at once, on targets without a model."""
    suite = loaded.suite
    targets = tuple(
        Target(id=one.id, image=one.image, policy=one.policy, env=one.env) for one in suite.matrix.targets
    )
    changed: Suite = suite.model_copy(
        update={
            "tasks": tuple(_idle(task) for task in suite.tasks),
            "matrix": suite.matrix.model_copy(update={"targets": targets}),
        }
    )
    return replace(loaded, suite=changed)


def _idle(task: Task) -> Task:
    nothing = {"steps": (), "faults": (), "expect": None, "expect_class": None}
    runner = Runner(kind=RunnerKind.EXTERNAL_COMMAND, command="true")
    return task.model_copy(update={"runner": runner, **nothing})
