"""`boxeval` and `python -m boxeval`. Help and version are answered without importing the command line."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing costs as much as half of Python's start
    from typing import TextIO


def main() -> int:
    """Run the command line of this process and return its exit code."""
    arguments = sys.argv[1:]
    if arguments in (["--help"], ["-h"]):
        return _print(_help(), sys.stdout, 0)
    if arguments == ["--version"]:
        from boxeval import __version__

        return _print(f"boxeval {__version__}\n", sys.stdout, 0)
    if not arguments:
        return _print(_help(), sys.stderr, 2)

    from boxeval.cli.app import call

    code = call(arguments)
    if code > 128:
        # Ended by a signal: everything is said, and no thread that still waits for the engine is waited for.
        for stream in (sys.stdout, sys.stderr):
            _flush(stream)
        os._exit(code)
    return code


def _flush(stream: TextIO) -> None:
    try:  # noqa: SIM105  importing contextlib would slow every start
        stream.flush()
    except (OSError, ValueError):
        pass  # nobody is there to read it


def _help() -> str:
    # No pathlib here: importing it costs as much as starting Python.
    path = os.path.join(os.path.dirname(__file__), "cli", "help.txt")  # noqa: PTH118, PTH120
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        return file.read()


def _print(text: str, stream: TextIO, code: int) -> int:
    try:
        print(text, end="", file=stream, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


if __name__ == "__main__":
    sys.exit(main())
