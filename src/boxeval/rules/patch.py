"""Changes of files and links as text that `git apply` takes. Git itself is not asked: pure bytes in, bytes out.

The format is that of `git diff --binary --full-index --no-renames`. What is UTF-8 without a NUL is a unified
diff, as long as `Work` has room for its lines; everything else is a binary patch, so the whole is UTF-8 and can be a
JSON string.
"""

from __future__ import annotations

import hashlib
import io
import re
import zlib
from base64 import b85encode
from collections.abc import Iterator
from dataclasses import dataclass

from boxeval.rules.line_diff import Edit, Work, edits

FILE, PROGRAM, LINK = "100644", "100755", "120000"
CONTEXT = 3
_BINARY_LINE = 52
_NO_NEWLINE = b"\\ No newline at end of file\n"
_NO_BLOB = "0" * 40
_PLAIN_NAME = re.compile(rb"[!#-\[\]-~]+")
_ESCAPES = {b"\a": b"\\a", b"\b": b"\\b", b"\t": b"\\t", b"\n": b"\\n", b"\v": b"\\v", b"\f": b"\\f", b"\r": b"\\r",
            b'"': b'\\"', b"\\": b"\\\\"}  # fmt: skip
_REFUSED = re.compile(rb"(\.git|git~1)[ .]*(:.*)?", re.IGNORECASE | re.DOTALL)
_REFUSED_LINK = re.compile(rb"(\.gitmodules|gi[0-9a-z]*~[0-9]+).*", re.IGNORECASE | re.DOTALL)


class TooLarge(Exception):
    """A section would be longer than it may be."""


@dataclass(frozen=True, slots=True)
class Blob:
    """A file (`FILE` or `PROGRAM`) with its content, or a `LINK` with its target, as Git keeps it."""

    mode: str
    data: bytes

    @property
    def name(self) -> str:
        """The object id that Git gives it."""
        head = b"blob %d\0" % len(self.data)
        return hashlib.sha1(head + self.data, usedforsecurity=False).hexdigest()


def is_refused(path: bytes, link: bool) -> bool:
    """Whether `git apply` refuses the path: names that some file system takes for `.git` or `.gitmodules`."""
    parts = re.split(rb"[/\\]", path)
    return any(_REFUSED.fullmatch(part) or (link and _REFUSED_LINK.fullmatch(part)) for part in parts)


def section(path: bytes, old: Blob | None, new: Blob | None, work: Work, limit: int) -> bytes:
    """The part of a patch that turns `old` into `new` at `path`; None is "not there". Empty if they are equal.

    Raises `TooLarge` above `limit` bytes. A link in place of a file, or the reverse, is deleted and created.
    """
    if old == new:
        return b""
    if old and new and (old.mode == LINK) != (new.mode == LINK):
        removed = section(path, old, None, work, limit)
        return removed + section(path, None, new, work, limit - len(removed))
    names = quoted(b"a/" + path), quoted(b"b/" + path)
    text = _head(names, old, new) + _body(names, old, new, work, limit)
    if len(text) > limit:
        raise TooLarge
    return text


def quoted(name: bytes) -> bytes:
    """A name as Git writes it: in quotes with C escapes if it holds anything but printable ASCII."""
    if _PLAIN_NAME.fullmatch(name):
        return name
    escaped = (_ESCAPES.get(c) or (c if b" " <= c <= b"~" else b"\\%03o" % ord(c)) for c in _bytes(name))
    return b'"' + b"".join(escaped) + b'"'


def _bytes(name: bytes) -> Iterator[bytes]:
    return (name[i : i + 1] for i in range(len(name)))


def _head(names: tuple[bytes, bytes], old: Blob | None, new: Blob | None) -> bytes:
    lines = [b"diff --git %s %s" % names]
    if new is None and old is not None:
        lines.append(b"deleted file mode " + old.mode.encode())
    elif old is None and new is not None:
        lines.append(b"new file mode " + new.mode.encode())
    elif old and new and old.mode != new.mode:
        lines += [b"old mode " + old.mode.encode(), b"new mode " + new.mode.encode()]
    ids = old.name if old else _NO_BLOB, new.name if new else _NO_BLOB
    if ids[0] != ids[1]:
        same_mode = f" {old.mode}" if old and new and old.mode == new.mode else ""
        lines.append(f"index {ids[0]}..{ids[1]}{same_mode}".encode())
    return b"\n".join(lines) + b"\n"


def _body(names: tuple[bytes, bytes], old: Blob | None, new: Blob | None, work: Work, limit: int) -> bytes:
    before, after = old.data if old else b"", new.data if new else b""
    if before == after:
        return b""
    if not (_is_text(before) and _is_text(after) and work.takes(before, after)):
        forward = _literal(after, limit)
        return b"GIT binary patch\n" + forward + _literal(before, limit - len(forward))
    places = names[0] if old else b"/dev/null", names[1] if new else b"/dev/null"
    return b"--- %s\n+++ %s\n" % places + b"".join(_hunks(_lines(before), _lines(after), work))


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in data


def _lines(data: bytes) -> list[bytes]:
    """Split after each LF and nowhere else: a CR belongs to its line."""
    return io.BytesIO(data).readlines()


def _hunks(old: list[bytes], new: list[bytes], work: Work) -> Iterator[bytes]:
    pending: list[Edit] = []
    for edit in edits(old, new, work):
        if pending and edit.old_from - pending[-1].old_to > 2 * CONTEXT:
            yield _hunk(old, new, pending)
            pending = []
        pending.append(edit)
    if pending:
        yield _hunk(old, new, pending)


def _hunk(old: list[bytes], new: list[bytes], group: list[Edit]) -> bytes:
    before = min(CONTEXT, group[0].old_from)
    after = min(CONTEXT, len(old) - group[-1].old_to)
    at, end = group[0].old_from - before, group[-1].old_to + after
    text: list[bytes] = []
    for edit in group:
        text += (_line(b" ", line) for line in old[at : edit.old_from])
        text += (_line(b"-", line) for line in old[edit.old_from : edit.old_to])
        text += (_line(b"+", line) for line in new[edit.new_from : edit.new_to])
        at = edit.old_to
    text += (_line(b" ", line) for line in old[at:end])
    ranges = (
        _range(group[0].old_from - before, end),
        _range(group[0].new_from - before, group[-1].new_to + after),
    )
    return b"@@ -%s +%s @@\n" % ranges + b"".join(text)


def _range(start: int, end: int) -> bytes:
    """Lines count from 1; an empty range is told by the line before it."""
    return b"%d,%d" % (start if start == end else start + 1, end - start)


def _line(sign: bytes, line: bytes) -> bytes:
    return sign + line if line.endswith(b"\n") else sign + line + b"\n" + _NO_NEWLINE


def _literal(data: bytes, limit: int) -> bytes:
    """The whole content: deflated, 52 bytes a line, a letter for the line's length, base 85, an empty line."""
    packed = zlib.compress(data)
    if len(packed) > limit:
        raise TooLarge
    lines = [b"literal %d" % len(data)]
    for at in range(0, len(packed), _BINARY_LINE):
        piece = packed[at : at + _BINARY_LINE]
        size = len(piece)
        lines.append(bytes([size + (64 if size <= 26 else 70)]) + b85encode(piece, pad=True))
    return b"\n".join(lines) + b"\n\n"
