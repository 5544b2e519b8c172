"""Which changes `protect` puts back before anything is graded.

Python loads a module from the cache beside its source, and from an unchecked one whatever the source says. So a cache
belongs to the sources that it lies beside.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set

from boxeval.rules import forbidden
from boxeval.rules.boundary import parents, whole
from boxeval.spec.trial import Change

CACHE = "__pycache__"


def protected(changes: Sequence[Change], patterns: Sequence[str], holding: Set[str]) -> tuple[Change, ...]:
    """Changes of what a pattern names, new entries too, and of the directories `holding` such entries.

    Of a directory that only holds something protected, its mode, that it is a directory and its cache of compiled
    Python are protected; other entries in it are not.
    """
    named = set(forbidden.match(changes, patterns))
    folders = {"", *holding}
    named |= {change.path for change in changes if _in_cache(change.path, folders)}
    around = {change.path for change in changes if change.path in holding and change.was is not None}
    return whole(changes, named | around)


def holding(entries: Sequence[str]) -> frozenset[str]:
    """The directories that these entries lie in."""
    return frozenset(parent for path in entries for parent in parents(path))


def _in_cache(path: str, folders: Set[str]) -> bool:
    """Whether a path is, or lies in, the cache of one of these directories."""
    split = (place.rpartition("/") for place in (*parents(path), path))
    return any(name == CACHE and folder in folders for folder, _, name in split)


def caches_beside(paths: Collection[bytes]) -> frozenset[bytes]:
    """Where Python would look for compiled forms of these files, if none of them is in such a cache itself."""
    beside = {path.rpartition(b"/")[0] for path in paths if path.endswith(b".py")}
    caches = {b"/".join(filter(None, (folder, CACHE.encode()))) for folder in beside}
    return frozenset(caches.difference(paths))
