"""A first look at a tar's blocks, before a library parses them.

It bounds what `tarfile` cannot: a negative size sends it back in the file for ever (CVE-2025-8194), a long
extended header makes its regular expressions quadratic (CVE-2024-6232), and a damaged header in the middle
silently ends the archive.
"""

from __future__ import annotations

import os
import re

from boxeval.formats.tree_index import MAX_MEMBERS

_BLOCK = 512
_MAX_EXTENDED = 64 * 1024
_WITHOUT_CONTENT = b"123456"
"""Links, devices, directories, FIFOs."""
_EXTENDED = b"xgXLK"
_SIZE_RECORD = re.compile(rb"(?:^|\n)[0-9]{1,20} size=")


def header_fault(descriptor: int) -> str | None:
    """Why the plain tar in this file is refused; None if its blocks are whole, bounded and in order."""
    at, members = 0, 0
    while block := os.pread(descriptor, _BLOCK, at):
        if block == bytes(len(block)):
            return None if members else "is empty"
        size = _number(block[124:136])
        if len(block) < _BLOCK or size is None or _number(block[148:156]) != _checksum(block):
            return f"is damaged at byte {at}" if members else "is not a tar archive"
        if size < 0:
            return f"has an entry of negative size at byte {at}"
        kind = block[156:157]
        if kind == b"S":
            return f"has a sparse file at byte {at}; pack it without --sparse"
        if kind in _EXTENDED and kind:
            if size > _MAX_EXTENDED:
                return f"has an extended header of more than {_MAX_EXTENDED // 1024} KiB at byte {at}"
            if _SIZE_RECORD.search(os.pread(descriptor, size, at + _BLOCK)):
                return f"has an extended size at byte {at}, which is not read"
        if size and (kind in _WITHOUT_CONTENT or (kind == b"\0" and block[:100].rstrip(b"\0")[-1:] in b"/")):
            return f"has an entry at byte {at} with content that its kind does not have"
        members += 1
        if members > 2 * MAX_MEMBERS:
            return f"has more than {MAX_MEMBERS} entries"
        at += _BLOCK + -(-size // _BLOCK) * _BLOCK
    return None if members else "is empty"


def _number(field: bytes) -> int | None:
    """A header's number: octal text, or big-endian base 256 with a mark in the first byte."""
    if field[:1] == b"\x80":
        return int.from_bytes(field[1:], "big")
    if field[:1] == b"\xff":
        return int.from_bytes(field, "big", signed=True)
    text = field.split(b"\0")[0].strip()
    if not re.fullmatch(rb"[0-7]*", text):
        return None
    return int(text or b"0", 8)


def _checksum(block: bytes) -> int:
    return sum(block[:148]) + 8 * ord(" ") + sum(block[156:])
