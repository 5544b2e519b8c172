"""Small fixtures for the tests of this folder."""

from __future__ import annotations

import hashlib
import io

from boxeval.sandbox.slot import Slot
from boxeval.spec.tree import FixtureEntry
from boxeval.spec.trial import EntryKind


def put(slot: Slot, entries: list[FixtureEntry]) -> str:
    """Put a fixture into the cache and return its key there."""
    digest = digest_of(entries)
    key = f"{digest[:40]}.{slot.policy.uid}"
    if not slot.keeper.request("has_fixture", key=key)["present"]:
        slot.keeper.put_fixture(key, slot.policy, digest, entries)
    return key


def digest_of(entries: list[FixtureEntry]) -> str:
    """The digest rule of FixtureEntry, written a second time."""
    whole = hashlib.sha256()
    for entry in entries:
        value = entry.link
        if entry.kind is EntryKind.FILE and entry.open is not None:
            with entry.open() as source:
                value = hashlib.sha256(source.read()).hexdigest().encode()
        whole.update(b"%s\0%s\0%04o\0%s\n" % (entry.kind.value.encode(), entry.path, entry.mode, value))
    return whole.hexdigest()


def file(path: str, data: bytes, mode: int = 0o644) -> FixtureEntry:
    return FixtureEntry(path.encode(), EntryKind.FILE, mode, len(data), open=lambda: io.BytesIO(data))


def directory(path: str, mode: int = 0o755) -> FixtureEntry:
    return FixtureEntry(path.encode(), EntryKind.DIRECTORY, mode)


def symlink(path: str, target: str) -> FixtureEntry:
    return FixtureEntry(path.encode(), EntryKind.SYMLINK, 0o777, link=target.encode())
