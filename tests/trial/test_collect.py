"""What is taken of a stream of changes: no more than a receipt holds, and the stream to its end all the same."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from boxeval.sandbox.changes import Told
from boxeval.sandbox.keeper_frames import RawChange, Side
from boxeval.spec.policy import CollectCaps
from boxeval.spec.trial import EntryKind
from boxeval.trial import collect as module
from boxeval.trial.collect import collect_step
from boxeval.trial.fixtures import FixtureRef

FIXTURE = FixtureRef("key", "0" * 64)


def stream(names: list[bytes], read: list[bytes]) -> Iterator[Told]:
    for name in names:
        read.append(name)
        yield Told(RawChange(name, Side(EntryKind.DIRECTORY, 0o755, 0), None), None, None)


def collected(names: list[bytes], read: list[bytes]) -> Any:
    keeper = SimpleNamespace(collect=lambda *_what, **_more: stream(names, read))
    slot = SimpleNamespace(keeper=keeper, policy=SimpleNamespace(collect=CollectCaps()))
    return collect_step(SimpleNamespace(slot=slot, blobs=None), FIXTURE, "layer", ())  # type: ignore[arg-type]


def test_names_past_what_a_receipt_holds_are_the_candidates_doing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RECORD_BYTES", 100)
    read: list[bytes] = []
    # Each byte that is no UTF-8 is four characters in a receipt.
    within = collected([b"\xff" * 12, b"b" * 52], read)
    assert [len(change.path) for change in within.changes] == [48, 52]
    names = [b"\xff" * 12, b"b" * 53, b"c"]
    read.clear()
    past = collected(names, read)
    assert (past.changes, past.limit) == ((), "more than 100 bytes to record")
    assert read == names
