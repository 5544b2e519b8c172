"""Which changes `protect` puts back before anything is graded."""

from __future__ import annotations

from collections.abc import Sequence, Set

from boxeval.rules import forbidden
from boxeval.rules.boundary import parents, whole
from boxeval.spec.trial import Change


def protected(changes: Sequence[Change], patterns: Sequence[str], holding: Set[str]) -> tuple[Change, ...]:
    """Changes of what a pattern names, new entries too, and of the directories `holding` such entries.

    Of a directory that only holds something protected, its mode and that it is a directory are protected; other
    entries in it are not.
    """
    named = set(forbidden.match(changes, patterns))
    around = {change.path for change in changes if change.path in holding and change.was is not None}
    return whole(changes, named | around)


def holding(entries: Sequence[str]) -> frozenset[str]:
    """The directories that these entries lie in."""
    return frozenset(parent for path in entries for parent in parents(path))
