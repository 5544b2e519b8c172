"""What a shim is sent and what it says, checked before it is believed: lines of `name=value` in a frame.

A box cannot forge its shim's frames, but what carries them can be broken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from boxeval.errors import BoxError
from boxeval.sandbox.capture import Bounded
from boxeval.sandbox.job import Job

T = TypeVar("T")


@dataclass(slots=True)
class CommandEnd:
    """How one command ended. `exit_code` is None if it was ended by `signal` or never started.

    `stalled_ms` is the longest time that nobody took the shim's report while the command ran.
    """

    exit_code: int | None
    signal: int | None
    timed_out: bool
    spawn_error: str | None
    wall_ms: int
    stdout: Bounded
    stderr: Bounded
    stalled_ms: int = 0


@dataclass(frozen=True, slots=True)
class LastReport:
    """How a box ended, by its shim and its cgroup."""

    orphans: int
    survivors: int
    oom_kills: int
    pids_denied: int
    cpu_ms: int
    max_rss_kib: int
    full: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FaultMoment:
    """When a planned fault was due, counted from the start of the first command, and why it could not be done."""

    number: int
    at_ms: int
    error: str | None


def job_frame(job: Job, last: bool) -> bytes:
    """The payload of a J frame. Raises BoxError for text that cannot be told."""
    env = [f"{name}={value}" for name, value in job.env.items()]
    fields = [
        str(job.timeout_ms),
        str(int(last)),
        str(len(job.argv)),
        str(len(env)),
        job.cwd,
        *job.argv,
        *env,
    ]
    if any("\0" in text for text in fields):
        raise BoxError("a command, its environment or its directory holds a NUL")
    return b"".join(text.encode("utf-8", "surrogateescape") + b"\0" for text in fields) + job.stdin


def facts_of(payload: bytes) -> dict[str, str]:
    """The lines of a frame, by name."""
    lines = payload.decode("ascii", "replace").splitlines()
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


def command_end(payload: bytes, out: Bounded, err: Bounded) -> CommandEnd:
    """The end that an R frame tells, with the output that came before it. Raises BoxError if it tells none."""

    def told(facts: dict[str, str]) -> CommandEnd:
        signal = int(facts["signal"])
        failed_to_start = facts["spawn_error"] or None
        return CommandEnd(
            exit_code=None if signal or failed_to_start else int(facts["exit"]),
            signal=signal or None,
            timed_out=facts["timed_out"] == "1",
            spawn_error=failed_to_start,
            wall_ms=int(facts["wall_ms"]),
            stdout=out,
            stderr=err,
            stalled_ms=int(facts["stalled_ms"]),
        )

    return _checked(payload, told)


def last_report(payload: bytes) -> LastReport:
    """What an F frame tells, or BoxError."""

    def told(facts: dict[str, str]) -> LastReport:
        names = ("orphans", "survivors", "oom_kills", "pids_denied", "cpu_ms", "max_rss_kib")
        return LastReport(**{name: int(facts[name]) for name in names}, full=tuple(facts["full"].split()))

    return _checked(payload, told)


def fault_moment(payload: bytes) -> FaultMoment:
    """What an S frame tells, or BoxError."""

    def told(facts: dict[str, str]) -> FaultMoment:
        return FaultMoment(int(facts["number"]), int(facts["at_ms"]), facts["error"] or None)

    return _checked(payload, told)


def _checked(payload: bytes, told: Callable[[dict[str, str]], T]) -> T:
    try:
        return told(facts_of(payload))
    except (KeyError, ValueError) as error:
        raise BoxError(f"the shim's report makes no sense: {error!r:.100}") from None
