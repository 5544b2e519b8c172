"""Step 4: what the candidate changed, by content, into evidence. The names and contents are hostile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from boxeval.errors import HostileTree
from boxeval.rules.paths import readable
from boxeval.sandbox.changes import Told
from boxeval.sandbox.keeper_frames import Side
from boxeval.spec.trial import Change, ChangeKind, Collected, Patch
from boxeval.trial.context import TrialContext
from boxeval.trial.fixtures import FixtureRef
from boxeval.trial.patch import OLD_CONTENT, PATCH_BYTES, PatchWriter


def collect(context: TrialContext, fixture: FixtureRef, layers: Sequence[str]) -> Collected:
    """Every change that `layers`, topmost first, make to the fixture, sorted by path, and the patch of them.

    A tree past a cap is told in the result.
    """
    last, patch, found = _Last(), PatchWriter(), []

    def keep(pieces: Iterator[bytes]) -> str:
        return context.blobs.put_stream(last.copied(pieces))[0]

    caps, nested = context.slot.policy.collect, set[bytes]()
    try:
        stream = context.slot.keeper.collect(layers, fixture.key, caps, keep, OLD_CONTENT)
        for told in stream:
            found.append(_change(told))
            patch.add(told, last.taken())
            nested.update(sub for sub in fixture.submodules if told.change.path.startswith(sub + b"/"))
    except HostileTree as error:
        return Collected(limit=str(error)[:300])
    return _sorted(found, patch.finish(context.blobs, sorted(nested.union(stream.repositories))))


def collect_step(context: TrialContext, fixture: FixtureRef, layer: str, below: Sequence[str]) -> Collected:
    """Every change that one layer makes to the layers `below` it, topmost first, over the fixture. No patch."""

    def keep(pieces: Iterator[bytes]) -> str:
        return context.blobs.put_stream(pieces)[0]

    caps = context.slot.policy.collect
    try:
        stream = context.slot.keeper.collect([layer], fixture.key, caps, keep, below=below)
        return _sorted([_change(told) for told in stream])
    except HostileTree as error:
        return Collected(limit=str(error)[:300])


def _sorted(changes: list[Change], patch: Patch | None = None) -> Collected:
    return Collected(changes=tuple(sorted(changes, key=lambda change: change.path)), patch=patch)


class _Last:
    """The content of the last file on its way to the blobs, unless it is more than a patch may hold."""

    def __init__(self) -> None:
        self._data: bytearray | None = None

    def copied(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        data: bytearray | None = bytearray()
        for piece in pieces:
            if data is not None:
                data += piece
                data = data if len(data) <= PATCH_BYTES else None
            yield piece
        self._data = data

    def taken(self) -> bytes | None:
        data, self._data = self._data, None
        return None if data is None else bytes(data)


def _change(told: Told) -> Change:
    new, old = told.change.new, told.change.old
    kind = ChangeKind.MODIFIED
    if new is None or old is None:
        kind = ChangeKind.DELETED if new is None else ChangeKind.CREATED
    return Change(
        path=readable(told.change.path),
        change=kind,
        sha256=told.sha256,
        was_sha256=old.sha256 if old else None,
        **(_facts(new, ("kind", "mode", "size_bytes", "link")) if new else {}),
        **(_facts(old, ("was", "was_mode", "was_size_bytes", "was_link")) if old else {}),
    )


def _facts(side: Side, names: tuple[str, str, str, str]) -> dict[str, Any]:
    link = None if side.link is None else readable(side.link)
    return dict(zip(names, (side.kind, side.mode, side.size_bytes, link), strict=True))
