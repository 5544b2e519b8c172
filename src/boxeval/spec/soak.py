"""What a soak found: samples of what the controller uses, one after each round, and how they grow."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from boxeval.spec.base import Natural, Positive, Record


class SoakSample(Record):
    """After one round of all suites. The first round only warms up, and no slope is made of it."""

    round: Positive
    at_ms: Natural = Field(description="Since the beginning, by a monotonic clock.")
    memory_kib: Natural = Field(description="Resident memory of the controller.")
    descriptors: Natural = Field(description="Open descriptors of the controller.")
    threads: Natural = Field(description="Threads of the controller.")
    disk_kib: Natural = Field(description="What this home's data and cache take on the disk.")
    engine_objects: Natural = Field(description="Containers and volumes of this home on the engine.")


class Slope(Record):
    """A straight line through the samples, by least squares."""

    first: Natural
    last: Natural
    per_hour: float | None = Field(description="None with fewer than three samples after the first.")
    margin: float | None = Field(
        description="Of a 95 % interval, as if deviations were normal and independent."
    )


class SoakRound(Record):
    """One run of one suite."""

    suite: str
    round: Positive
    run_id: str
    trials: Natural
    code: Natural = Field(description="What `boxeval run` would have ended with.")
    why: str
    kept: str | None = Field(None, description="Directory of a run that was not good.")


class SoakReport(Record):
    """A whole soak. It is good if every run of it is."""

    format: Literal["boxeval.soak/1"] = "boxeval.soak/1"
    boxeval: str
    started_at: str
    hours: float
    elapsed_ms: Natural
    interrupted_by: int | None = None
    rounds: tuple[SoakRound, ...]
    samples: tuple[SoakSample, ...]
    slopes: dict[str, Slope]
