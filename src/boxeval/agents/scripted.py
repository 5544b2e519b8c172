"""The reference agent of the base image, driven by whatever model the trial has (S48)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from boxeval.agents.environment import candidate_environment
from boxeval.agents.external_command import working_directory
from boxeval.agents.interface import ModelAccess
from boxeval.sandbox.job import Job
from boxeval.spec.plan import PlannedTask

AGENT = "/opt/boxeval/agent"
"""Its folder in the image. Isolated mode keeps Python from loading anything out of the workspace or home."""

JOURNAL = ".boxeval/session.jsonl"
"""Its session ledger, in its home."""


@dataclass(frozen=True, slots=True)
class ReferenceAgent:
    """Takes its prompt from stdin, since one argument may have 128 KiB only."""

    def jobs(
        self,
        task: PlannedTask,
        image_path: str,
        model: ModelAccess | None = None,
        *,
        ambient: Mapping[str, str] | None = None,
    ) -> tuple[Job, ...]:
        """One job: the whole loop."""
        options = task.runner.options
        env = {
            "BOXEVAL_PERMISSIONS": task.runner.permissions or "full",
            **({"BOXEVAL_OPTIONS": options.model_dump_json()} if options else {}),
            **candidate_environment(task, image_path, model, ambient=ambient),
        }
        stdin = (task.runner.prompt or "").encode()
        argv = ("python3", "-I", AGENT)
        return (Job(argv, env, working_directory(task.runner), stdin, task.agent_timeout_ms),)
