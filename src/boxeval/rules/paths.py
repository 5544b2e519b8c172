"""Names of a tree, which may be any bytes, as text for records."""

from __future__ import annotations

import re


def readable(name: bytes) -> str:
    r"""A name as text that no other name shares: UTF-8 as it is, other bytes as \xNN, a backslash doubled."""
    return name.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")


def raw_name(text: str) -> bytes:
    """The name that `readable` made this of."""

    def byte(escape: re.Match[bytes]) -> bytes:
        return b"\\" if escape[0] == b"\\\\" else bytes.fromhex(escape[1].decode())

    return re.sub(rb"\\\\|\\x([0-9a-f]{2})", byte, text.encode())


def is_git_internal(path: bytes) -> bool:
    """Whether a path is a repository's own `.git` or in it."""
    return b".git" in path.split(b"/")
