"""Known holes of engines by version, what they mean, and what boxeval does about each (`boxeval doctor`).

A version tells what its authors released; distributions mend old versions without a new number, so a hit in one of
theirs is a question to them and not an answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

Version = tuple[int, int, int, int]
_RELEASED = 1 << 30
"""Sorts a release after its own candidates."""
_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?:-(?:rc|beta|alpha)\.?(\d+))?")
_REPACKED = re.compile(r"[+~]|ubuntu|deb\d|\.el\d|\.fc\d|-\d+$")


@dataclass(frozen=True, slots=True)
class Hole:
    """`fixed` has the first good version of each line that was mended. `avoided`: boxeval gives it no opening."""

    names: tuple[str, ...]
    component: str
    fixed: tuple[str, ...]
    what: str
    answer: str
    avoided: bool = True


HOLES = (
    Hole(
        ("CVE-2019-5736",),
        "runc",
        ("1.0.0-rc7",),
        "root in a container could overwrite runc on the host",
        "no process of a box is root, and nothing is started in a running box by the engine",
    ),
    Hole(
        ("CVE-2021-30465",),
        "runc",
        ("1.0.0-rc95",),
        "containers that share a volume could swap a mount's target for a link",
        "a box starts only after the one before it on the same workspace is dead",
    ),
    Hole(
        ("CVE-2023-27561", "CVE-2023-28642"),
        "runc",
        ("1.1.5",),
        "an image whose /proc is a link got rid of AppArmor and SELinux",
        "boxes do not stand on either; capabilities, the filter of system calls and mounts are read back",
    ),
    Hole(
        ("CVE-2024-21626",),
        "runc",
        ("1.1.12",),
        "a working directory below /proc/self/fd led out to the host",
        "a box starts in /, by the shim, which changes the directory only after it is shut in",
    ),
    Hole(
        ("CVE-2025-31133", "CVE-2025-52565", "CVE-2025-52881"),
        "runc",
        ("1.2.8", "1.3.3"),
        "races while a container starts could open masked paths of /proc, /dev/console or redirect writes there",
        "boxes that run never share a mount with one that starts, have no terminal and no root user; "
        "an image from a stranger could still try, so use a newer runc for these",
        avoided=False,
    ),
    Hole(
        ("CVE-2020-15257",),
        "containerd",
        ("1.3.9", "1.4.3"),
        "its abstract sockets could be reached from the host's network namespace",
        "no box is in the host's network namespace; the probe looks for abstract sockets",
    ),
    Hole(
        ("CVE-2023-25173",),
        "containerd",
        ("1.5.18", "1.6.18"),
        "supplementary groups were set up wrongly",
        "the groups of each box are read from the kernel and compared",
    ),
    Hole(
        ("CVE-2024-40635",),
        "containerd",
        ("1.6.38", "1.7.27", "2.0.4"),
        "a user id beyond 32 bits ran as root",
        "a policy's ids end at 65533, and the kernel's answer is compared",
    ),
    Hole(
        (
            "CVE-2018-15664",
            "CVE-2019-14271",
            "CVE-2021-41089",
            "CVE-2026-41567",
            "CVE-2026-41568",
            "CVE-2026-42306",
        ),
        "docker",
        ("29.5.1",),
        "copying to or from a container (docker cp, the archive calls) could be led to files of the host",
        "the archive calls are never used on a box; files travel through the keeper's streams",
    ),
    Hole(
        ("CVE-2021-41091",),
        "docker",
        ("20.10.9",),
        "other users of the machine could reach programs inside the engine's directory",
        "no process of a box can gain rights, but users of this machine might: upgrade if there are others",
        avoided=False,
    ),
    Hole(
        ("CVE-2022-24769",),
        "docker",
        ("20.10.14",),
        "containers started with inheritable capabilities",
        "all five sets of capabilities are read from the kernel and must be empty",
    ),
    Hole(
        ("CVE-2022-36109",),
        "docker",
        ("20.10.18",),
        "supplementary groups were set up wrongly",
        "the groups of each box are read from the kernel and compared",
    ),
    Hole(
        ("CVE-2024-29018",),
        "docker",
        ("23.0.11", "25.0.5", "26.0.0"),
        "names asked for in an internal network were passed on to the outside",
        "boxes are in no network of the engine and have no name service",
    ),
    Hole(
        ("io_uring",),
        "docker",
        ("25.0.0",),
        "its own filter of system calls lets io_uring through",
        "boxes have boxeval's filter (policies/seccomp.json), unless a policy says engine-default",
    ),
    Hole(
        ("CVE-2026-31431",),
        "docker",
        ("29.4.2",),
        "its own filter lets AF_ALG sockets through, by which some kernels let read-only files be changed",
        "boxes have boxeval's filter (policies/seccomp.json), unless a policy says engine-default",
    ),
)


def parse(text: str) -> Version | None:
    """Major, minor, patch and number of the candidate; None if this is no version."""
    found = _VERSION.match(text)
    if found is None:
        return None
    major, minor, patch, candidate = found.groups()
    return int(major), int(minor), int(patch or 0), _RELEASED if candidate is None else int(candidate)


def is_mended(version: Version, fixed: tuple[str, ...]) -> bool:
    """True if a version has a fix: by its own line (major.minor) if that was mended, else by the newest line."""
    fixes = sorted(parsed for text in fixed if (parsed := parse(text)))
    for fix in fixes:
        if fix[:2] == version[:2]:
            return version >= fix
    return version > fixes[-1]


def is_repackaged(text: str) -> bool:
    """True for a version that a distribution numbered, such as `1.1.5+ds1` or `28.2.2-0ubuntu1`."""
    return _REPACKED.search(text) is not None


def known_holes(versions: Mapping[str, str]) -> Iterator[tuple[Hole, str]]:
    """Every hole that the version of a component has by its number, with that version. Unknown versions have none."""
    for hole in HOLES:
        text = versions.get(hole.component, "")
        version = parse(text)
        if version is not None and not is_mended(version, hole.fixed):
            yield hole, text
