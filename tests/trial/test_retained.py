"""What is kept of an agent's home: the bounds of a subtree and of all, at their edge and past it (G73)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from boxeval.errors import HostileTree
from boxeval.sandbox.keeper_frames import Side
from boxeval.spec.agent_record import AgentRecord, RetainedTree
from boxeval.spec.host_options import HostOptions
from boxeval.spec.policy import CollectCaps
from boxeval.spec.suite import Runner, RunnerKind
from boxeval.spec.trial import EntryKind
from boxeval.trial.retained import retain

MIB = 1024 * 1024


class FakeHome:
    """A keeper whose home has one file of some size at each path, and that holds to the caps as the real one does."""

    def __init__(self, sizes: dict[str, int]) -> None:
        self._sizes = sizes

    def collect_home(self, paths: Sequence[bytes], caps: CollectCaps, keep: Any) -> Iterator[Any]:
        for path in map(bytes.decode, paths):
            size = self._sizes.get(path)
            if size is None:
                continue
            if size > caps.bytes:
                raise HostileTree(f"more than {caps.bytes} bytes")
            new = Side(EntryKind.FILE, 0o644, size)
            change = SimpleNamespace(path=path.encode(), new=new)
            yield SimpleNamespace(change=change, sha256=keep(iter((b"",))))


def kept(sizes: dict[str, int]) -> dict[str, RetainedTree]:
    """The declared subtrees, `aN` at the path `dir/N`."""
    names = {f"a{number}": path for number, path in enumerate(sizes)}
    host = HostOptions(artifacts=names)
    numbers = itertools.count()
    context: Any = SimpleNamespace(
        task=SimpleNamespace(runner=Runner(kind=RunnerKind.AGENT, agent="aider", host=host)),
        slot=SimpleNamespace(keeper=FakeHome(sizes)),
        blobs=SimpleNamespace(put_stream=lambda _: (f"{next(numbers):064}", 0)),
    )
    record = retain(context, AgentRecord(host="boxeval.host.aider"))
    return {tree.id: tree for tree in record.artifacts}


@pytest.mark.contract("G37", "G73")
def test_each_subtree_has_eight_mebibytes() -> None:
    found = kept({"d/edge": 8 * MIB, "d/past": 8 * MIB + 1})
    assert [tree.status for tree in found.values()] == ["complete", "unavailable"]
    assert found["a1"].reason == "more than 8388608 bytes"


@pytest.mark.contract("G37", "G73")
def test_all_subtrees_have_thirty_two_mebibytes_together() -> None:
    found = kept({f"d/{number}": 8 * MIB for number in range(4)} | {"d/more": 1})
    assert [tree.status for tree in found.values()] == ["complete"] * 4 + ["unavailable"]
    assert found["a4"].reason == "all artifacts are too large"
    rest = kept({f"d/{number}": 8 * MIB for number in range(3)} | {"d/most": 7 * MIB, "d/over": MIB + 1})
    assert [tree.status for tree in rest.values()] == ["complete"] * 4 + ["unavailable"]
    assert rest["a4"].reason == "more than 1048576 bytes"


@pytest.mark.contract("G73")
def test_thirty_two_subtrees_and_no_more() -> None:
    assert len(kept({f"d/{number}": 1 for number in range(32)})) == 32
    with pytest.raises(ValidationError, match="at most 32"):
        HostOptions(artifacts={f"a{number}": "d" for number in range(33)})
