"""Small files that an operator names on the command line: read once, never through a link, strict in form."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from boxeval.errors import Problem, SuiteError
from boxeval.formats import place
from boxeval.formats.typed import Refusals, check
from boxeval.formats.yaml_source import Source, in_order, scan
from boxeval.receipts.canonical import MalformedError, strict_json
from boxeval.receipts.storage import read_regular
from boxeval.spec.base import Record

R = TypeVar("R", bound=Record)
SCANNED_BYTES = 1024 * 1024
"""Up to here a file is read with the place of everything in it; beyond only as JSON, whose reader is faster."""


def read_source(path: Path, what: str, limit: int) -> tuple[Source, bytes]:
    """A YAML or JSON file of at most `limit` bytes, with its bytes. Raises `SuiteError`."""
    shown = place.escaped(str(path))
    try:
        data = read_regular(path, limit)
    except (OSError, ValueError) as error:
        reason = _reason(error, limit)
        raise SuiteError([Problem(shown, "", f"{what} cannot be read: {reason}")]) from None
    if len(data) <= SCANNED_BYTES:
        return scan(data, shown), data
    try:
        return Source(shown, strict_json(data, limit)), data
    except MalformedError as error:
        message = f"{what} of more than {SCANNED_BYTES} bytes must be JSON: {place.plain(str(error))}"
        raise SuiteError([Problem(shown, "", message)]) from None


def read_record(
    path: Path, what: str, limit: int, kind: type[R], refusals: Refusals | None = None
) -> tuple[R, Source]:
    """The same as a record of `kind`. Raises `SuiteError` with every problem."""
    source, _ = read_source(path, what, limit)
    record, problems = check(source, kind, refusals)
    if record is None or problems:
        raise SuiteError(in_order(problems))
    return record, source


def _reason(error: Exception, limit: int) -> str:
    text = getattr(error, "strerror", None) or str(error)
    if text.startswith("Too many levels of symbolic links"):
        return "it is a symlink"
    if text.startswith(f"larger than {limit} bytes"):
        return f"it is larger than {limit} bytes"
    return "it is not a regular file" if text.startswith("not a regular file") else text
