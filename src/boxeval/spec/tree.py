"""One entry of a fixture on its way into a box."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from boxeval.spec.trial import EntryKind


@dataclass(frozen=True, slots=True)
class FixtureEntry:
    """A file, directory or symlink. `path` is relative, POSIX, without `.` or `..`; `mode` is 0o000-0o777.

    A fixture's entries come sorted by path, parents first. Its digest is the SHA-256 over, for each entry,
    `kind NUL path NUL mode NUL (sha256 of content | link target | nothing) LF`, with mode as four octal
    digits.
    """

    path: bytes
    kind: EntryKind
    mode: int
    size_bytes: int = 0
    link: bytes = b""
    open: Callable[[], BinaryIO] | None = None
