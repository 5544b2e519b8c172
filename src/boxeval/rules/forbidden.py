"""Which changes touch a forbidden path (contract S13)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pathspec

from boxeval.spec.trial import Change, EntryKind


def match(changes: Iterable[Change], patterns: Sequence[str]) -> tuple[str, ...]:
    """The paths of changes that a gitignore-style pattern names, in the order of the changes.

    Created, modified and deleted all count. A pattern for a directory names all below it. `./x` means `/x`. A
    symlink counts as a directory too, since what is read through it would be below the forbidden name.
    """
    spec = pathspec.GitIgnoreSpec.from_lines([_rooted(pattern) for pattern in patterns])
    return tuple(change.path for change in changes if any(spec.match_file(name) for name in _names(change)))


def _rooted(pattern: str) -> str:
    negated = "!" if pattern.startswith("!") else ""
    rest = pattern.removeprefix("!")
    return f"{negated}/{rest.removeprefix('./')}" if rest.startswith("./") else pattern


def _names(change: Change) -> tuple[str, ...]:
    # `.` of a regular expression stops at a newline, which a file name may hold; NUL it may not.
    name = change.path.replace("\n", "\0")
    if {change.kind, change.was} & {EntryKind.DIRECTORY, EntryKind.SYMLINK}:
        return name, f"{name}/"
    return (name,)
