"""How a candidate's turn becomes commands for a box."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from boxeval.sandbox.job import Job
from boxeval.spec.plan import PlannedTask


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """How the box reaches its model. `base_url` is loopback inside the box and ends in `/v1`."""

    base_url: str
    api_key: str
    model: str


class Agent(Protocol):
    """One kind of candidate."""

    def jobs(
        self,
        task: PlannedTask,
        image_path: str,
        model: ModelAccess | None = None,
        *,
        ambient: Mapping[str, str] | None = None,
    ) -> tuple[Job, ...]:
        """The commands of one turn, which run in order in one box until one of them fails.

        `image_path` is the PATH of the task's image. `ambient` is the controller's environment where
        `BOXEVAL_HERMETIC=0` lets it in; None keeps it out. Each job may use the agent's whole deadline.
        """
