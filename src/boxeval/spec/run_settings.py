"""Recurring selections of case runs, in a file; a flag beats what is in it (contract G76)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from boxeval.spec.base import Record
from boxeval.spec.case_run import Share

Word = Annotated[str, StringConstraints(min_length=1, max_length=4096)]
Trials = Annotated[int, Field(ge=1, le=10_000)]
Jobs = Annotated[int, Field(ge=1, le=1024)]


class RunSettings(Record):
    """One file; every key may be left out, and stands for the flag of its name."""

    format: Literal["boxeval.run-settings.v1", "sevro.run-settings.v1"] | None = None
    host: Word | None = None
    model: Word | None = None
    effort: Word | None = None
    semantic_host: Word | None = None
    semantic_model: Word | None = None
    condition: Literal["passive", "enforced"] | None = None
    trials: Trials | None = None
    threshold: Share | None = None
    jobs: Jobs | None = None
