"""One command for a box, as the shim is told it."""

from __future__ import annotations

from dataclasses import dataclass, field

WORKSPACE = "/workspace"
HOME = "/home/agent"
TMP = "/tmp"  # noqa: S108  a private tmpfs of the box


@dataclass(frozen=True, slots=True)
class Job:
    """`argv` runs with exactly `env` in `cwd` (absolute, inside the box); killed after `timeout_ms`.

    Of its output `stdout_bytes` and `stderr_bytes` are kept; without them, what the policy says.
    """

    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    cwd: str = WORKSPACE
    stdin: bytes = b""
    timeout_ms: int = 60_000
    stdout_bytes: int | None = None
    stderr_bytes: int | None = None


def shell(text: str) -> tuple[str, ...]:
    """The argv that runs a shell command and stops at its first failing line."""
    return ("sh", "-e", "-c", text)
