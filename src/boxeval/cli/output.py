"""Everything that commands print goes through here."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from boxeval.errors import StorageError
from boxeval.reports.escape import escape

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def say(text: str) -> None:
    """Print to standard output, which must be safe text already. A reader that went away changes nothing: the
    command goes on, and its exit code still tells the truth.
    """
    try:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        raise StorageError(f"cannot write to standard output: {error.strerror}") from error


def say_json(value: object) -> None:
    """Print a JSON document for programs: ASCII only, so no byte of it can draw on a terminal."""
    import json

    say(json.dumps(value, indent=2, allow_nan=False))


def camel(record: DataclassInstance) -> dict[str, object]:
    """The fields of a dataclass under the names that JSON has everywhere here: camelCase."""
    from dataclasses import asdict

    from pydantic.alias_generators import to_camel

    return {to_camel(name): value for name, value in asdict(record).items()}


def complain(message: str) -> None:
    """One line on standard error, after the program's name."""
    warn(f"boxeval: {message}")


def warn(line: str) -> None:
    """One safe line on standard error. Nothing more can be done if that is closed too."""
    try:
        sys.stderr.write(escape(line) + "\n")
        sys.stderr.flush()
    except OSError:
        pass
