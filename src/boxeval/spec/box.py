"""What the controller saw of one box: its commands, its counters, whether it is over."""

from __future__ import annotations

from pydantic import Field

from boxeval.spec.base import Natural, Record, Sha256
from boxeval.spec.chaos import Injected


class Capture(Record):
    """A bounded copy of one output stream.

    `sha256` is over the whole stream, `kept` over the bytes that were kept.
    """

    size_bytes: Natural
    sha256: Sha256
    truncated: bool
    kept: Sha256 | None = Field(None, description="Blob of the kept bytes: head, then tail. None if empty.")


class CommandResult(Record):
    """One command in a box, as its shim reported it.

    Exactly one of exit_code and signal is set if it ended.
    """

    exit_code: int | None
    signal: int | None
    timed_out: bool
    spawn_error: str | None = Field(None, description="Why the command could not be started, by errno name.")
    wall_ms: Natural
    stdout: Capture
    stderr: Capture


class BoxResult(Record):
    """One box from start to settled."""

    image_id: str
    commands: tuple[CommandResult, ...]
    settled: bool = Field(description="Shim gone, engine says exited, cgroup empty or gone.")
    survivors: Natural = Field(0, description="Processes still alive after the kill.")
    orphans: Natural = Field(0, description="Processes alive when the main process ended.")
    oom_kills: Natural = Field(0, description="From the box's cgroup.")
    pids_denied: Natural = Field(0, description="Forks refused by the pid limit, from the box's cgroup.")
    cpu_ms: Natural = 0
    max_rss_kib: Natural = 0
    engine_oom_flag: bool = False
    disk_full: bool = Field(False, description="The slot's workspace had no free byte or inode at the end.")
    differences: tuple[str, ...] = Field(
        (), description="Effective settings that are not what the policy asked for."
    )
    injected: tuple[Injected, ...] = Field((), description="Faults of the task's schedule, in order.")
    error: str | None = Field(None, description="Engine fault that ended the box, in one line.")
