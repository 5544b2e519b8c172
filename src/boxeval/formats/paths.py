"""Paths inside a workspace, as a suite writes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from boxeval.formats.place import show

MAX_NAME_BYTES = 255
MAX_PATH_BYTES = 4096
MAX_DEPTH = 128


def inner_fault(path: str) -> str | None:
    """Why a path cannot name something inside the workspace; None if it can."""
    if "\0" in path:
        return "has a NUL character"
    if path.startswith("/"):
        return f"{show(path)} is absolute; write it relative to the workspace"
    if ".." in path.split("/"):
        return f"{show(path)} leaves the workspace with `..`"
    size_fault = bounds_fault(path.encode("utf-8", "surrogateescape"))
    return f"{show(path)} {size_fault}" if size_fault else None


def file_fault(path: str) -> str | None:
    """Like `inner_fault`, for a path that must name a file below the workspace's root."""
    if fault := inner_fault(path):
        return fault
    if path.endswith("/") or path.split("/")[-1] in ("", "."):
        return f"{show(path)} names a directory, not a file"
    return None


def bounds_fault(path: bytes) -> str | None:
    """Whether a name, the path or its depth is more than a Linux file system or a box takes."""
    parts = path.split(b"/")
    if any(len(part) > MAX_NAME_BYTES for part in parts):
        return f"has a name of more than {MAX_NAME_BYTES} bytes"
    if len(path) > MAX_PATH_BYTES:
        return f"is longer than {MAX_PATH_BYTES} bytes"
    if len(parts) > MAX_DEPTH:
        return f"is deeper than {MAX_DEPTH} directories"
    return None


def normal(path: str) -> str:
    """Without `.` parts and doubled slashes."""
    return "/".join(part for part in path.split("/") if part not in ("", "."))


def collisions(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each path that cannot exist beside the others, and why."""
    seen: dict[str, str] = {}
    for path in paths:
        if (same := seen.setdefault(normal(path), path)) != path:
            yield path, f"is the same file as {show(same)}"
    for name, path in seen.items():
        parts = name.split("/")
        for depth in range(1, len(parts)):
            if (parent := "/".join(parts[:depth])) in seen:
                yield path, f"lies below {show(seen[parent])}, which is a file"
                break
