"""Runs in a box: tells facts of one file of the workspace as JSON. See `boxeval.rules.file_checks` for the answers.

The file is hostile: every step to it is without links, it must be a regular file, and it is read within a limit.
Whatever it costs too much is a fault of the file. The box's own limits come later: past one of them nobody could tell
whose fault it was, and a candidate could choose that.
"""

from __future__ import annotations

import base64
import contextlib
import fnmatch
import json
import math
import os
import re
import resource
import signal
import sqlite3
import stat
import sys
import time
from collections.abc import Iterator
from typing import Any

from boxeval.rules.json_values import NotJson, NoValue, equal, has_at_least, kind, parse, resolve

ROOT = "/workspace"
FILE_BYTES = 32 * 1024 * 1024
DOCUMENT_BYTES = 64 * 1024
LINE_BYTES = 1024 * 1024
VALUE_BYTES = 16 * 1024
VALUE_DEPTH = 16
FAULT_CHARACTERS = 300
QUERY_S = 10.0
CPU_S = 12.0
SAFE = 2**53 - 1
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Fault(Exception):
    """The file is not as it should be."""


class Missing(Exception):
    """There is no such file."""


def main(grader: str, configuration: dict[str, Any], memory_bytes: int) -> None:
    """Print the answer. `memory_bytes` is what may be used; the box must have more."""
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    signal.signal(signal.SIGPROF, _takes_too_long)
    signal.setitimer(signal.ITIMER_PROF, CPU_S)
    try:
        answer = _facts(grader, configuration)
    except Missing:
        is_count = grader in ("boxeval.log-parse", "boxeval.event-budget")
        answer = {"count": 0} if is_count else {"found": False}
    except Fault as fault:
        answer = {"fault": str(fault)[:FAULT_CHARACTERS]}
    except (MemoryError, RecursionError):
        answer = {"fault": "is too much to read"}
    signal.setitimer(signal.ITIMER_PROF, 0)
    sys.stdout.write(json.dumps(answer))


def _takes_too_long(_number: int, _frame: object) -> None:
    raise Fault(f"takes more than {CPU_S:g} s of processor time to read")


def _facts(grader: str, configuration: dict[str, Any]) -> dict[str, Any]:
    if "artifactPath" in configuration:
        return _document(configuration["artifactPath"])
    file = configuration["file"]
    if grader in ("boxeval.log-parse", "boxeval.event-budget"):
        wanted = configuration.get("where", {})
        return {"count": sum(has_at_least(event, wanted) for event in _events(file))}
    if "query" in configuration:
        return _queried(file, configuration["query"])
    with opened(file) as stream:
        try:
            document = parse(stream.read().decode("utf-8"))
        except UnicodeDecodeError:
            raise Fault("is not UTF-8") from None
        except NotJson as error:
            raise Fault(str(error)) from None
    try:
        value = resolve(document, configuration.get("pointer", ""))
    except NoValue:
        return {"found": False}
    if grader == "boxeval.ready":
        return {"found": _holds(value, configuration["member"])}
    return {"found": True, "value": _sealable(value)}


def _holds(value: Any, member: Any) -> bool:
    if isinstance(value, dict):
        return isinstance(member, str) and member in value
    if isinstance(value, list):
        return any(equal(one, member) for one in value)
    raise Fault(f"has a {kind(value)} there, neither an array nor an object")


def _document(pattern: str) -> dict[str, Any]:
    """The one file that a path with at most one `*` in its last part names: its path, and its bytes in base64."""
    *folders, name = pattern.split("/")
    if "*" in name:
        found = _matching(folders, name)
        if len(found) != 1:
            raise Fault(f"matches {len(found)} files, not one")
        name = found[0]
    path = "/".join([*folders, name])
    with opened(path, DOCUMENT_BYTES) as stream:
        return {"path": path, "base64": base64.b64encode(stream.read()).decode()}


def _matching(folders: list[str], pattern: str) -> list[str]:
    head, _, tail = pattern.partition("*")
    shape = fnmatch.translate(f"{_plain(head)}*{_plain(tail)}")
    with _directory(folders) as directory, os.scandir(directory) as entries:
        return [
            one.name
            for one in entries
            if one.is_file(follow_symlinks=False) and re.fullmatch(shape, one.name)
        ]


def _plain(text: str) -> str:
    """Only `*` is a pattern here."""
    return re.sub(r"[?[]", r"[\g<0>]", text)


@contextlib.contextmanager
def opened(path: str, limit: int = FILE_BYTES) -> Iterator[Any]:
    """The file, reached without following a link, if it is regular and not too large."""
    *folders, name = path.split("/")
    with _directory(folders) as directory:
        descriptor = _open(name, directory, 0)
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode):
        os.close(descriptor)
        raise Fault("is not a regular file")
    with os.fdopen(descriptor, "rb") as stream:
        if facts.st_size > limit:
            raise Fault(f"has {facts.st_size} bytes; at most {limit} are read")
        yield stream


@contextlib.contextmanager
def _directory(folders: list[str]) -> Iterator[int]:
    directory = os.open(ROOT, _FLAGS | os.O_DIRECTORY)
    try:
        for folder in folders:
            inner = _open(folder, directory, os.O_DIRECTORY)
            os.close(directory)
            directory = inner
        yield directory
    finally:
        os.close(directory)


def _open(name: str, directory: int, flags: int) -> int:
    try:
        return os.open(name, _FLAGS | flags, dir_fd=directory)
    except FileNotFoundError:
        raise Missing from None
    except OSError as error:
        raise Fault(f"cannot be reached by plain directories: {error.strerror}") from None


def _events(file: str) -> Iterator[Any]:
    """The objects of a JSON Lines file; a line that is none is a fault, and an empty one is nothing."""
    with opened(file) as stream:
        number = 0
        while line := stream.readline(LINE_BYTES + 1):
            number += 1
            if len(line) > LINE_BYTES:
                raise Fault(f"line {number} is longer than {LINE_BYTES} bytes")
            if not line.strip():
                continue
            try:
                event = parse(line.decode("utf-8").strip())
            except (UnicodeDecodeError, NotJson) as error:
                said = "is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
                raise Fault(f"line {number} {said}") from None
            if not isinstance(event, dict):
                raise Fault(f"line {number} is a {kind(event)}, not an object")
            yield event


def _queried(file: str, query: str) -> dict[str, Any]:
    """The first value of a query. The database is a copy in memory, read-only, and nothing of it is trusted."""
    with opened(file) as stream:
        content = stream.read()
    if not content.startswith(b"SQLite format 3\0"):
        raise Fault("is no SQLite database")
    database = sqlite3.connect(":memory:")
    until = time.monotonic() + QUERY_S
    database.set_progress_handler(lambda: time.monotonic() > until, 10_000)
    try:
        # A copy would keep the mark of a write-ahead log, which needs files beside it.
        database.deserialize(content[:18] + b"\1\1" + content[20:])
        database.execute("PRAGMA trusted_schema=OFF")
        database.execute("PRAGMA query_only=ON")
        row = database.execute(query).fetchone()
    except (sqlite3.Error, sqlite3.Warning, OverflowError, ValueError) as error:
        raise Fault(f"cannot be queried: {error}") from None
    finally:
        database.close()
    return {"found": False} if not row else {"found": True, "value": _sealable(row[0])}


def _sealable(value: Any, depth: int = 0) -> Any:
    """A value that a receipt can hold; else a fault."""
    if depth > VALUE_DEPTH:
        raise Fault(f"has a value there that is deeper than {VALUE_DEPTH} levels")
    if isinstance(value, dict | list):
        for inner in (*value, *value.values()) if isinstance(value, dict) else value:
            _sealable(inner, depth + 1)
    elif isinstance(value, bytes):
        raise Fault("has bytes there, which are no JSON value")
    elif isinstance(value, str):
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise Fault("has half of a surrogate pair in the value there")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        too_large = not math.isfinite(value) or (value == int(value) and abs(value) > SAFE)
        if too_large:
            raise Fault("has a number there that is too large to be compared")
    if depth == 0 and len(json.dumps(value)) > VALUE_BYTES:
        raise Fault(f"has a value there of more than {VALUE_BYTES} bytes")
    return value
