"""The write boundary of a turn: which changes it allowed, and the verdict on the others (contract S36-S39).

A verdict is a pure function of what was collected, so `boxeval verify` computes it again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import rfc8785

from boxeval.rules import forbidden
from boxeval.spec.trial import (
    BoundaryStatus,
    BoundaryVerdict,
    Change,
    ChangeKind,
    Collected,
    Enforcement,
    EntryKind,
    PutBack,
    StepSeen,
    Unrecoverable,
)

EXCLUDED = "it is excluded from the snapshot, so what was there before is not known"
HOLDS_EXCLUDED = "it holds something that is excluded from the snapshot"
_STILL_THERE = "it was put back, and yet differs from the snapshot"
_GIT = ".git"
_PLAIN = (EntryKind.FILE, EntryKind.DIRECTORY, EntryKind.SYMLINK, None)


def allowed(change: Change, writes: Sequence[str]) -> bool:
    """Whether a change lies within `writes`.

    `dir/` allows files, directories and links below `dir`, and `dir` itself as long as it is a directory or gone.
    Any other entry allows one regular file, or its absence. Directories that an entry lies in may be created. A
    `.git` is never below an entry: it must be named in it.
    """
    return any(_within(change, entry) for entry in writes)


def _within(change: Change, entry: str) -> bool:
    base = "/".join(part for part in entry.split("/") if part not in ("", "."))
    is_subtree = entry.endswith("/") or not base
    if change.path == base:
        wanted = (EntryKind.DIRECTORY if is_subtree else EntryKind.FILE, None)
        return change.kind in wanted and change.was in wanted
    inside = f"{base}/" if base else ""
    if is_subtree and change.path.startswith(inside):
        return change.kind in _PLAIN and _GIT not in change.path.removeprefix(inside).split("/")
    is_on_the_way = base.startswith(f"{change.path}/")
    return is_on_the_way and change.was is None and change.kind is EntryKind.DIRECTORY


def violations(changes: Sequence[Change], writes: Sequence[str] | None) -> tuple[Change, ...]:
    """The changes outside `writes`, in their order. None allows all.

    What cannot stay if these go is among them: see `whole`.
    """
    if writes is None:
        return ()
    return whole(changes, {change.path for change in changes if not allowed(change, writes)})


def whole(changes: Sequence[Change], paths: set[str]) -> tuple[Change, ...]:
    """The changes at `paths`, and those that stand or fall with them.

    A path comes back only into a directory, so what replaced or deleted a directory on the way to it goes too; and
    with a directory that goes, all that is in it goes.
    """
    on_the_way = {parent for path in paths for parent in parents(path)}
    chosen = paths | {c.path for c in changes if c.path in on_the_way and _hides(c)}
    gone = {c.path for c in changes if c.path in chosen and _is_new_directory(c)}
    return tuple(c for c in changes if c.path in chosen or not gone.isdisjoint(parents(c.path)))


def parents(path: str) -> tuple[str, ...]:
    """The directories that a path lies in, outermost first, the workspace itself left out."""
    return tuple(path[:place] for place, character in enumerate(path) if character == "/")


def _hides(change: Change) -> bool:
    return change.was is EntryKind.DIRECTORY and change.kind is not EntryKind.DIRECTORY


def _is_new_directory(change: Change) -> bool:
    return change.kind is EntryKind.DIRECTORY and change.was is not EntryKind.DIRECTORY


def undoable(found: Sequence[Change], excludes: Sequence[str]) -> tuple[tuple[Change, ...], dict[str, str]]:
    """Violations that can be put back, and the others with the reason why not.

    A path that `workspace.excludes` keeps out of the snapshot may exist where the fixture came from: nothing is
    known of it, so it is left as it is, and so is a new directory that holds one.
    """
    left = dict.fromkeys(forbidden.match(found, excludes), EXCLUDED) if excludes else {}
    holding = {parent for path in left for parent in parents(path)}
    for change in found:
        if change.path in holding and _is_new_directory(change):
            left.setdefault(change.path, HOLDS_EXCLUDED)
    return tuple(change for change in found if change.path not in left), left


def described(change: Change) -> PutBack:
    """A change by the kind of it: created, changed, deleted, mode, link or kind."""
    if change.change is ChangeKind.CREATED:
        return PutBack(path=change.path, kind="created")
    if change.change is ChangeKind.DELETED:
        return PutBack(path=change.path, kind="deleted")
    if change.kind is not change.was:
        return PutBack(path=change.path, kind="kind")
    if change.kind is EntryKind.SYMLINK:
        return PutBack(path=change.path, kind="link")
    return PutBack(path=change.path, kind="mode" if change.sha256 == change.was_sha256 else "changed")


def judge(
    step: str,
    writes: Sequence[str] | None,
    excludes: Sequence[str],
    baseline: str,
    collected: Collected,
    enforced: Enforcement,
) -> BoundaryVerdict:
    """The verdict on one turn, from its changes and what was found after putting back (`enforced.kept`)."""
    found = violations(collected.changes, writes)
    undone, left = undoable(found, excludes)
    told = {fault.path: fault.reason for fault in enforced.faults}
    if why := collected.limit or collected.error:
        left["."] = f"the changes of the turn are not known: {why}"
    kept = enforced.kept or Collected()
    if enforced.kept is None or kept.limit or kept.error:
        still = {change.path for change in undone}
    else:
        still = {change.path for change in violations(kept.changes, writes)} - left.keys()
    for path in sorted(still | told.keys()):
        left[path] = told.get(path) or kept.limit or kept.error or _STILL_THERE
    status = BoundaryStatus.ROLLED_BACK if found else BoundaryStatus.CLEAN
    verdict = BoundaryVerdict(
        step=step,
        allow=None if writes is None else tuple(writes),
        baseline=baseline,
        changed=tuple(change.path for change in collected.changes),
        violations=tuple(described(change) for change in found),
        rolled_back=tuple(change.path for change in undone if change.path not in left),
        unrecoverable=tuple(Unrecoverable(path=path, reason=left[path]) for path in sorted(left)),
        status=BoundaryStatus.ROLLBACK_INCOMPLETE if left else status,
        digest="0" * 64,
    )
    return verdict.model_copy(update={"digest": digest(verdict)})


def digest(verdict: BoundaryVerdict) -> str:
    """SHA-256 over the canonical JSON of a verdict without its digest."""
    return _sha256(verdict.model_dump(mode="json", by_alias=True, exclude={"digest"}))


def baseline(fixture: str, before: Iterable[StepSeen]) -> str:
    """What a turn began with: the fixture, and what the steps before it have left."""
    layers = [[change.model_dump(mode="json", by_alias=True) for change in _left_by(step)] for step in before]
    return _sha256({"format": "boxeval.baseline/1", "fixture": fixture, "layers": layers})


def _left_by(step: StepSeen) -> tuple[Change, ...]:
    kept = step.enforced.kept if step.enforced else None
    return (kept or step.collected or Collected()).changes


def _sha256(value: dict[str, Any]) -> str:
    return hashlib.sha256(rfc8785.dumps(value)).hexdigest()
