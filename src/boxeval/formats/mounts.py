"""Which read-only mounts a policy may ask for."""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from boxeval.formats.place import Path as Place
from boxeval.formats.place import show
from boxeval.spec.policy import ReadOnlyMount

_CLOSED_SOURCES = (
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/var/run",
    "/etc",
    "/var/lib/docker",
    "/var/lib/containerd",
)
_HOMES = ("/root", "/home")
_CLOSED_TARGETS = ("/proc", "/sys", "/dev", "/workspace", "/home/agent", "/tmp", "/.boxeval")  # noqa: S108
_MOUNTINFO = Path("/proc/self/mountinfo")


def mount_faults(
    mounts: Sequence[ReadOnlyMount], mount_points: Sequence[str] | None = None
) -> Iterator[tuple[Place, str]]:
    """Place in the policy and reason of every mount that is refused. Looks at the host's file system.

    A mount point below a source would stay writable in the box (moby#23499), so such a source is refused.
    """
    points = host_mount_points() if mount_points is None and mounts else mount_points or ()
    for index, mount in enumerate(mounts):
        if fault := source_fault(mount.source, points):
            yield ("mounts", index, "source"), fault
        others = [other.target for other in mounts[:index]]
        if fault := target_fault(mount.target, others):
            yield ("mounts", index, "target"), fault


def source_fault(source: str, mount_points: Sequence[str]) -> str | None:
    """Why a host path may not be shown in a box, links resolved; None if it may."""
    try:
        real = os.path.realpath(source, strict=True)
        mode = Path(real).stat().st_mode
    except (OSError, ValueError) as error:
        return f"{show(source)} cannot be mounted: {getattr(error, 'strerror', None) or error}"
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        return f"{show(source)} is neither a directory nor a regular file"
    for path in {real, posixpath.normpath(source)}:
        for closed in _CLOSED_SOURCES:
            if below(path, closed) or below(closed, path):
                return f"{show(source)} is never mounted: it is, holds or lies in `{closed}`"
        if path in (*_HOMES, str(Path("~").expanduser())):
            return f"{show(source)} is never mounted: it is a home directory"
    inner = [point for point in mount_points if point != real and below(point, real)]
    if inner:
        return f"{show(source)} has another mount at {show(inner[0])}, which would stay writable"
    return None


def target_fault(target: str, others: Sequence[str]) -> str | None:
    """Why a path in the box may not be mounted over; None if it may. `others` are targets that are taken."""
    if target != posixpath.normpath(target) or target.startswith("//"):
        return f"{show(target)} must be written without `.`, `..`, doubled or trailing slashes"
    for closed in _CLOSED_TARGETS:
        if below(target, closed) or below(closed, target):
            return f"{show(target)} may not be mounted over: it is, holds or lies in `{closed}`"
    for other in others:
        if below(target, other) or below(other, target):
            return f"{show(target)} overlaps with the mount at {show(other)}"
    return None


def below(path: str, parent: str) -> bool:
    """Whether a normal absolute path is `parent` or lies in it."""
    return path == parent or path.startswith(parent.rstrip("/") + "/")


def host_mount_points() -> list[str]:
    """Every mount point of this process's mount namespace."""
    try:
        lines = _MOUNTINFO.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []
    return [_unescape(fields[4]) for line in lines if len(fields := line.split(" ")) > 4]


def _unescape(text: str) -> str:
    for octal, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(octal, character)
    return text
