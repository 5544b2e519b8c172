"""Step 4: what the candidate changed, by content, into evidence. The names and contents are hostile."""

from __future__ import annotations

from collections.abc import Iterator

from boxeval.errors import HostileTree
from boxeval.sandbox.keeper import RawChange
from boxeval.spec.trial import Change, ChangeKind, Collected
from boxeval.trial.context import TrialContext
from boxeval.trial.stage import AGENT_LAYER, Staged


def collect(context: TrialContext, staged: Staged) -> Collected:
    """Every change against the fixture, sorted by path. A tree past a cap is told in the result."""

    def keep(pieces: Iterator[bytes]) -> str:
        return context.blobs.put_stream(pieces)[0]

    found: list[Change] = []
    caps = context.slot.policy.collect
    try:
        for raw, sha256 in context.slot.keeper.collect(AGENT_LAYER, staged.fixture.key, caps, keep):
            found.append(_change(raw, sha256))
    except HostileTree as error:
        return Collected(limit=str(error)[:300])
    return Collected(changes=tuple(sorted(found, key=lambda change: change.path)))


def _change(raw: RawChange, sha256: str | None) -> Change:
    kind = ChangeKind.DELETED
    if raw.kind is not None:
        kind = ChangeKind.CREATED if raw.was is None else ChangeKind.MODIFIED
    return Change(
        path=readable(raw.path),
        change=kind,
        kind=raw.kind,
        mode=raw.mode,
        size_bytes=raw.size_bytes,
        sha256=sha256,
        link=None if raw.link is None else readable(raw.link),
        was=raw.was,
    )


def readable(name: bytes) -> str:
    r"""A name as text that no other name shares: UTF-8 as it is, other bytes as \xNN, a backslash doubled."""
    return name.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")
