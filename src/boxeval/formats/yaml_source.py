"""Strict YAML: plain values with the place of each, and one reading only.

A plain scalar counts as a number, a truth value or null only where YAML 1.1 and the core schema of YAML 1.2
agree; where they differ (`010`, `1:30`, `NO`, a date) it is an error that asks for quotes. Values are never
altered.
"""

from __future__ import annotations

import math
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
import yaml.reader

from boxeval.errors import Problem, SuiteError
from boxeval.formats import place
from boxeval.formats.place import Position, dotted, show
from boxeval.formats.yaml_nodes import MAX_DEPTH, Node, Refused, compose

MAX_BYTES = 1024 * 1024
MAX_VALUES = 100_000
"""Counted after aliases are expanded."""
MAX_WHOLE_NUMBER = 2**53 - 1
"""Larger ones are not the same number for every reader of JSON."""

_NULL = {"", "~", "null", "Null", "NULL"}
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_HEX = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+][0-9]+)?")
_TRAP = re.compile(
    r"""y|Y|n|N|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF
    |[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)
    |[-+]?0b[01_]+|[-+]?0o[0-7_]+|[-+]?0x[0-9a-fA-F_]+
    |[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?       # base sixty, times
    |[-+]?([0-9][0-9_]*(\.[0-9_]*)?|\.[0-9][0-9_]*)([eE][-+]?[0-9]+)?
    |[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt \t].*)?
    |=|<<""",
    re.VERBOSE,
)


@dataclass(slots=True)
class Source:
    """A document as plain dicts, lists and scalars, and where each part stands.

    `problems` are mistakes beside which the rest could still be read; `parse` raises them.
    """

    file: str
    tree: Any = None
    problems: list[Problem] = field(default_factory=list)
    marks: dict[place.Path, Position] = field(default_factory=dict)
    keys: dict[place.Path, Position] = field(default_factory=dict)
    unquoted: dict[place.Path, str] = field(default_factory=dict)

    def position(self, path: place.Path) -> Position:
        """Line and column of the value at `path`, or of the nearest part around it that exists."""
        while path and path not in self.marks:
            path = path[:-1]
        return self.marks.get(path, (1, 1))

    def key_position(self, path: place.Path) -> Position:
        """Line and column of the key that leads to `path`; of the value where there is no key."""
        return self.keys.get(path) or self.position(path)

    def problem(self, path: place.Path, message: str, *, at_key: bool = False) -> Problem:
        """A problem with the value at `path`, or with its key."""
        line, column = self.key_position(path) if at_key else self.position(path)
        return Problem(self.file, dotted(path), message, line, column)


def parse(data: bytes, file: str) -> Source:
    """Read one document. Raises `SuiteError` with every problem in file order."""
    source = scan(data, file)
    if source.problems:
        raise SuiteError(in_order(source.problems))
    return source


def in_order(problems: list[Problem]) -> list[Problem]:
    """Problems as they stand in the file."""
    return sorted(problems, key=lambda problem: (problem.line, problem.column))


def scan(data: bytes, file: str) -> Source:
    """Like `parse`, but raises only where nothing more can be read; other problems stay in the source."""
    if len(data) > MAX_BYTES:
        message = f"is larger than {MAX_BYTES // 1024} KiB, the most that is read"
        raise SuiteError([Problem(file, "", message, 1, 1)])
    text = _decode(data, file)
    reader = _Reader(Source(file))
    try:
        if (root := compose(text)) is not None:
            reader.source.tree = reader.value(root, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise SuiteError([Problem(file, "", _syntax(error, text), line, column)]) from None
    except yaml.YAMLError as error:
        raise SuiteError([Problem(file, "", f"is not YAML: {place.plain(str(error))}", 1, 1)]) from None
    return reader.source


def read_bounded(path: Path) -> bytes:
    """A regular file's bytes, at most one more than `MAX_BYTES`. Never waits for a pipe. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "is not a regular file")
        return stream.read(MAX_BYTES + 1)


def _decode(data: bytes, file: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # `start` counts after a byte order mark, which decoding with the signature drops.
        before = error.object[: error.start].decode("utf-8", "replace")
        message = f"byte 0x{error.object[error.start]:02x} is not UTF-8"
        raise SuiteError([Problem(file, "", message, *_place_after(before))]) from None
    if bad := yaml.reader.Reader.NON_PRINTABLE.search(text):
        message = f"character U+{ord(bad.group()):04X} may not stand in YAML; write it as an escape in quotes"
        raise SuiteError([Problem(file, "", message, *_place_after(text[: bad.start()]))])
    return text


def _place_after(before: str) -> Position:
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def _syntax(error: yaml.MarkedYAMLError, text: str) -> str:
    if isinstance(error, Refused):
        return str(error.problem)
    mark = error.problem_mark
    if mark and "cannot start any token" in str(error.problem):
        lines = text.splitlines()
        character = lines[mark.line][mark.column : mark.column + 1] if mark.line < len(lines) else ""
        if character == "\t":
            return "a tab cannot indent YAML; use spaces"
        return f"{show(character)} cannot start a value; write the value in quotes"
    if "maximum nesting depth" in str(error.problem):
        return f"is nested deeper than {MAX_DEPTH} levels"
    context = f"{error.context}: " if error.context else ""
    return place.plain(f"is not YAML: {context}{error.problem}")


class _Reader:
    """Turns nodes into plain values. A value that cannot be read once and for all stays as its text."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.values = 0

    def value(self, node: Node, path: place.Path) -> Any:
        self.values += 1
        if self.values > MAX_VALUES or len(path) > MAX_DEPTH:
            what = f"{MAX_VALUES} values" if self.values > MAX_VALUES else f"{MAX_DEPTH} levels"
            raise SuiteError([Problem(self.source.file, "", f"has more than {what}", *node.position)])
        self.source.marks[path] = node.position
        if node.tag is not None:
            self.fault(path, f"has the tag {show(node.tag)}; tags are not supported")
        if node.text is not None:
            return self.scalar(node, path)
        if node.pairs is not None:
            return self.mapping(node.pairs, path)
        return [self.value(item, (*path, index)) for index, item in enumerate(node.items)]

    def mapping(self, pairs: list[tuple[Node, Node]], path: place.Path) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, node in pairs:
            name = self.key(key, path)
            if name is None:
                continue
            here = (*path, name)
            if name in result:
                first = self.source.keys[here][0]
                self.at(key.position, here, f"is set twice; the first time in line {first}")
                continue
            self.source.keys[here] = key.position
            result[name] = self.value(node, here)
        return result

    def key(self, key: Node, path: place.Path) -> str | None:
        """The key's text; None (and a problem) if it is not text."""
        if key.text is None:
            self.at(key.position, path, "a key must be text, not a list or a mapping")
            return None
        if key.plain and key.text == "<<":
            self.at(key.position, path, "merge keys (`<<`) are not supported; write the keys out")
            return None
        if key.tag is not None or (key.plain and _meaning(key.text) is not str):
            self.at(key.position, path, f"key {show(key.text)} is not read as text; write it in quotes")
            return None
        if not _encodable(key.text):
            self.at(key.position, path, "a key holds half of a surrogate pair")
            return None
        return key.text

    def scalar(self, node: Node, path: place.Path) -> Any:
        text = node.text or ""
        if not _encodable(text):
            self.fault(path, "holds half of a surrogate pair, which is not a character")
            return ""
        if not node.plain:
            return text
        self.source.unquoted[path] = text
        meaning = _meaning(text)
        if meaning is None:
            advice = "as true or false" if text.isalpha() else "as a plain decimal number"
            self.fault(
                path, f"{show(text)} is ambiguous in YAML; write it in quotes, or {advice} if it is one"
            )
            return text
        if meaning in (int, float) and _too_large(text, meaning):
            self.fault(path, f"{show(text)} is too large for a number; write it in quotes if it is text")
            return 0
        return _convert(text, meaning)

    def fault(self, path: place.Path, message: str) -> None:
        self.source.problems.append(self.source.problem(path, message))

    def at(self, position: Position, path: place.Path, message: str) -> None:
        self.source.problems.append(Problem(self.source.file, dotted(path), message, *position))


def _encodable(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _meaning(text: str) -> type | None:
    """What all YAML readers take a plain scalar for; None if they differ."""
    if text in _NULL:
        return type(None)
    if text in _BOOL:
        return bool
    if _WHOLE.fullmatch(text) or _HEX.fullmatch(text):
        return int
    if _FLOAT.fullmatch(text):
        return float
    return None if _TRAP.fullmatch(text) else str


def _too_large(text: str, meaning: type) -> bool:
    if len(text) > 40:
        return True
    return abs(int(text, 0)) > MAX_WHOLE_NUMBER if meaning is int else math.isinf(float(text))


def _convert(text: str, meaning: type) -> Any:
    if meaning is bool:
        return _BOOL[text]
    if meaning is int:
        return int(text, 0)
    if meaning is float:
        return float(text)
    return text if meaning is str else None
