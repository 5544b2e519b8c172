"""Faults that a suite injects into a candidate's turn, and what became of each (contract S42)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from boxeval.spec.base import Natural, Positive, Record

Milliseconds = Annotated[int, Field(ge=0, le=24 * 3600 * 1000)]


class FaultSignal(StrEnum):
    """Signals that can be sent to a process of the candidate."""

    SIGINT = "SIGINT"
    SIGTERM = "SIGTERM"
    SIGHUP = "SIGHUP"
    SIGKILL = "SIGKILL"
    SIGSTOP = "SIGSTOP"
    SIGCONT = "SIGCONT"


class BoxFault(StrEnum):
    """Faults that strike a whole box."""

    CONTAINER_KILL = "container-kill"
    ENGINE_PAUSE = "engine-pause"
    OUT_OF_MEMORY = "out-of-memory"
    DISK_FULL = "disk-full"


class After(Record):
    """A moment by the clock."""

    after_ms: Milliseconds = Field(
        description="After the fault before, or after the start of the first command."
    )


class Between(Record):
    """A moment that the seed decides."""

    between_ms: tuple[Milliseconds, Milliseconds] = Field(
        description="Earliest and latest, counted like `afterMs`; drawn from seed, repeat and place in the list."
    )


class Fault(Record):
    """One fault. They happen in the order of the list, each once, and never outside the candidate's own box."""

    signal: FaultSignal | None = Field(None, strict=False, description="Sent to `target`.")
    fault: BoxFault | None = Field(None, strict=False, description="Strikes the box.")
    target: Literal["agent", "tool", "box"] = Field(
        description="`agent`: the main process; `tool`: the newest process of another name; `box` with `fault`."
    )
    at: Literal["start", "mid-tool"] | After | Between = Field(
        description="`mid-tool`: once there is a process with another name than the main process."
    )
    for_ms: Annotated[int, Field(ge=1, le=60_000)] | None = Field(
        None, description="With `engine-pause`: how long, in milliseconds; 1000 if not given."
    )
    seed: Natural = Field(0, description="Of the whole schedule, so the same for all faults of a task.")


class Injected(Record):
    """One fault whose moment came. `number` is its place in the task's list, from 1."""

    number: Positive
    delay_ms: Natural = Field(description="What the schedule asked for; 0 for named moments.")
    at_ms: Natural = Field(description="After the start of the first command, by the shim's clock.")
    delivered: bool
    detail: str | None = Field(None, description="Why it could not be delivered.")
