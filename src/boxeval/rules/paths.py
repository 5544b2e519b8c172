"""Names of a tree, which may be any bytes, as text for records."""

from __future__ import annotations


def readable(name: bytes) -> str:
    r"""A name as text that no other name shares: UTF-8 as it is, other bytes as \xNN, a backslash doubled."""
    return name.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")


def is_git_internal(path: bytes) -> bool:
    """Whether a path is a repository's own `.git` or in it."""
    return b".git" in path.split(b"/")
