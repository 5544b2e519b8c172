"""A candidate that is a command, or several in order: whatever the suite names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from boxeval.agents.environment import candidate_environment
from boxeval.agents.interface import ModelAccess
from boxeval.sandbox.job import WORKSPACE, Job, shell
from boxeval.spec.plan import PlannedTask
from boxeval.spec.suite import Runner


@dataclass(frozen=True, slots=True)
class ExternalCommand:
    """`command` is shell text; with `args` it is a program. Each of `commands` is shell text of its own.

    Every command gets the whole of `stdin`.
    """

    def jobs(
        self,
        task: PlannedTask,
        image_path: str,
        model: ModelAccess | None = None,
        *,
        ambient: Mapping[str, str] | None = None,
    ) -> tuple[Job, ...]:
        """One job a command."""
        runner = task.runner
        env = candidate_environment(task, image_path, model, ambient=ambient)
        stdin = (runner.stdin or "").encode()
        cwd = working_directory(runner)
        return tuple(Job(argv, env, cwd, stdin, task.agent_timeout_ms) for argv in _commands(runner))


def working_directory(runner: Runner) -> str:
    """Where a runner starts, inside the box."""
    return WORKSPACE if runner.cwd is None else f"{WORKSPACE}/{runner.cwd}"


def _commands(runner: Runner) -> tuple[tuple[str, ...], ...]:
    if runner.command is None:
        return tuple(shell(text) for text in runner.commands)
    return (shell(runner.command) if runner.args is None else (runner.command, *runner.args),)
