"""What a run of cases has that a run of a suite has not. Part of the plan, so it is sealed with it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from boxeval.spec.base import Record, Sha256

Condition = Literal["passive"]
"""`passive`: nothing that changes how the candidate runs is put into its box."""
Share = Annotated[float, Field(gt=0, le=1)]


class Route(Record):
    """Who answers: a host by its selector, a model as it was named, an effort."""

    host: str
    model: str | None = None
    effort: str | None = None


class CaseRun(Record):
    """Selections of a `--case-file` run. Digests only of what lies on the host; no path is in it."""

    condition: Condition
    threshold: Share = Field(description="Share of trials that must pass.")
    candidate: Route
    semantic: Route | None = Field(None, description="The judge of semantic checks.")
    project: Sha256 | None = Field(None, description="Over the files of --project-root.")
    runtime: Sha256 | None = Field(None, description="Over the runtime configuration with all it names.")
    settings: Sha256 | None = Field(None, description="Over the run settings file's values.")
    dry: bool = Field(False, description="Everything is prepared and nothing runs.")
