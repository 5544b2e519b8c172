"""Step 4: what the candidate changed, by content, into evidence. The names and contents are hostile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from boxeval.errors import HostileTree
from boxeval.rules.paths import readable
from boxeval.sandbox.changes import Told
from boxeval.sandbox.keeper_frames import Side
from boxeval.spec.trial import Change, ChangeKind, Collected, Patch
from boxeval.trial.context import TrialContext
from boxeval.trial.fixtures import FixtureRef
from boxeval.trial.patch import OLD_CONTENT, PATCH_BYTES, PatchWriter

RECORD_BYTES = 64 * 1024 * 1024
"""Of changes in a receipt, which is one line of bounded size: paths are repeated there, and escaped."""


def collect(context: TrialContext, fixture: FixtureRef, layers: Sequence[str]) -> Collected:
    """Every change that `layers`, topmost first, make to the fixture, sorted by path, and the patch of them.

    A tree past a cap is told in the result.
    """
    last, patch = _Last(), PatchWriter()
    found: list[Change] = []

    def keep(pieces: Iterator[bytes]) -> str:
        return context.blobs.put_stream(last.copied(pieces))[0]

    caps, nested = context.slot.policy.collect, set[bytes]()
    try:
        stream = context.slot.keeper.collect(layers, fixture.key, caps, keep, OLD_CONTENT)
        for told, change in _recorded(stream):
            found.append(change)
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
        return _sorted([change for _, change in _recorded(stream)])
    except HostileTree as error:
        return Collected(limit=str(error)[:300])


def _recorded(stream: Iterable[Told]) -> Iterator[tuple[Told, Change]]:
    """Every change with its record. Raises HostileTree at the end of a stream that is too much to record.

    It is counted while it comes: 100,000 names of 4 KiB, escaped, would be more than the controller has memory.
    """
    room = RECORD_BYTES
    for told in stream:
        change = _change(told)
        room -= sum(len(text) for text in (change.path, change.link, change.was_link) if text)
        if room >= 0:
            yield told, change
    if room < 0:
        raise HostileTree(f"more than {RECORD_BYTES} bytes to record")


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
