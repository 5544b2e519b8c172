"""Step 4: what the candidate changed, by content, into evidence. The names and contents are hostile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from boxeval.errors import HostileTree
from boxeval.rules.paths import readable
from boxeval.sandbox.changes import Told
from boxeval.sandbox.keeper_frames import Side
from boxeval.spec.trial import Change, ChangeKind, Collected
from boxeval.trial.context import TrialContext
from boxeval.trial.patch import OLD_CONTENT, PATCH_BYTES, PatchWriter
from boxeval.trial.stage import AGENT_LAYER, Staged


def collect(context: TrialContext, staged: Staged) -> Collected:
    """Every change against the fixture, sorted by path, and the patch of them.

    A tree past a cap is told in the result.
    """
    last = _Last()

    def keep(pieces: Iterator[bytes]) -> str:
        return context.blobs.put_stream(last.copied(pieces))[0]

    found: list[Change] = []
    patch = PatchWriter()
    submodules, nested = staged.fixture.submodules, set[bytes]()
    policy = context.slot.policy
    try:
        stream = context.slot.keeper.collect(
            AGENT_LAYER, staged.fixture.key, policy.collect, keep, OLD_CONTENT
        )
        for told in stream:
            found.append(_change(told))
            patch.add(told, last.taken())
            nested.update(sub for sub in submodules if told.change.path.startswith(sub + b"/"))
    except HostileTree as error:
        return Collected(limit=str(error)[:300])
    found.sort(key=lambda change: change.path)
    return Collected(
        changes=tuple(found), patch=patch.finish(context.blobs, sorted(nested.union(stream.repositories)))
    )


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
