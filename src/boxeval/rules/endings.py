"""How a box and its commands ended, told from the shim's report and the cgroup's counters together."""

from __future__ import annotations

import signal

from boxeval.spec.box import BoxResult, CommandResult

DETAIL_CHARACTERS = 300
_SHELL_SIGNAL = 128
_NOTES = {
    124: "the program's own, as `timeout` gives it",
    137: "the program's own, or a shell's for a child killed by SIGKILL; no limit was hit",
    153: "the program's own, or a shell's for a child that wrote past the file size limit",
}


def one_line(text: str) -> str:
    """Text for people: one line of at most 300 characters, nothing that moves a cursor."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= DETAIL_CHARACTERS else line[: DETAIL_CHARACTERS - 1] + "…"


def breach(box: BoxResult) -> str | None:
    """Why the box was not the isolated one that the policy asks for, or was not over when it was read."""
    if box.differences:
        return f"settings differ from the policy: {', '.join(box.differences)}"
    if box.survivors:
        return f"{box.survivors} processes survived the kill"
    if not box.settled and box.error is None:
        return "the box was not seen to end"
    return None


def ended_by_memory(box: BoxResult) -> bool:
    """The shim itself was killed for want of memory: the engine's flag and the missing report say so together.

    A command can bring that about by being smaller than the shim while what it holds is charged to the box.
    """
    return box.error is not None and box.engine_oom_flag and box.settled


def ended_badly(box: BoxResult) -> tuple[int, CommandResult] | None:
    """The first command that did not exit 0 by itself, with its number from 1."""
    for number, command in enumerate(box.commands, start=1):
        if command.exit_code != 0 or command.signal or command.timed_out or command.spawn_error:
            return number, command
    return None


def lost(command: CommandResult) -> bool:
    """No exit, no signal, no deadline: the box went away under the command."""
    return command.exit_code is None and command.signal is None and not command.timed_out


def limit_hit(box: BoxResult, command: CommandResult) -> str | None:
    """Which limit a command that ended badly has hit: `file size`, `memory`, `pids` or `disk`."""
    if command.signal == signal.SIGXFSZ:
        return "file size"
    if box.oom_kills:
        return "memory"
    if box.pids_denied:
        return "pids"
    return "disk" if box.disk_full else None


def exit_code(command: CommandResult) -> int | None:
    """The exit code as a shell gives it: 128 + n for signal n. None if the command did not end by itself."""
    if command.timed_out or command.spawn_error:
        return None
    return _SHELL_SIGNAL + command.signal if command.signal else command.exit_code


def describe(command: CommandResult) -> str:
    """`exited 1`, `was killed by SIGSEGV`, with what a reader could mistake explained."""
    if command.spawn_error:
        return f"could not be started: {command.spawn_error}"
    if command.signal:
        return f"was killed by {_signal_name(command.signal)}"
    note = _NOTES.get(command.exit_code or 0)
    return f"exited {command.exit_code}" + (f" ({note})" if note else "")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
