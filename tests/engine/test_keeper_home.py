"""Declared parts of the private home are read back after the trial, whatever is there instead of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from boxeval.errors import EngineError, HostileTree
from boxeval.sandbox.images import ImageInfo
from boxeval.sandbox.job import Job, shell
from boxeval.sandbox.slot import Slot, remove_volume
from boxeval.spec.policy import CollectCaps
from engine_trees import put

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/home/agent"}
MAKE = """
mkdir -p ~/.app/deep ~/dir && echo log > ~/.app/log && echo inner > ~/.app/deep/inner && echo secret > ~/secret
ln -s /etc/passwd ~/link && ln -s /etc ~/outside && mkfifo ~/fifo && head -c 5000 /dev/zero > ~/dir/large
ln -s ../secret ~/.app/deep/away
"""


@pytest.mark.contract("G37")
def test_only_what_is_declared_is_read_and_no_link_is_followed(slot: Slot, grader_image: ImageInfo) -> None:
    workspace = slot.agent_workspace("t", "agent", put(slot, []))
    box = slot.box("t", "agent", grader_image, workspace, 600, shares_private=True)
    try:
        box.start()
        end = box.run(Job(shell(MAKE), ENV), last=True)
        assert end.exit_code == 0, end.stderr.kept
        assert box.settle().settled
    finally:
        box.remove()
        remove_volume(slot.yard.engine, workspace)
    contents: list[bytes] = []

    def keep(pieces: Iterator[bytes]) -> str:
        contents.append(b"".join(pieces))
        return "0" * 64

    def read(*paths: bytes, **caps: int) -> dict[bytes, str]:
        contents.clear()
        limits = CollectCaps(**{"bytes": 4096, "members": 10, **caps})
        changes = [told.change for told in slot.keeper.collect_home(paths, limits, keep)]
        return {change.path: change.new.kind.value for change in changes if change.new}

    assert read(b".app/log", b"missing", b"missing/log", b"secret/x") == {b".app/log": "file"}
    assert contents == [b"log\n"]
    assert read(b".app") == {
        b".app": "directory",
        b".app/deep": "directory",
        b".app/deep/away": "symlink",
        b".app/deep/inner": "file",
        b".app/log": "file",
    }
    assert read(b"link", b"outside/passwd", b"fifo") == {b"link": "symlink", b"fifo": "fifo"}
    assert contents == []
    for paths, caps in (((b"dir",), {}), ((b".app",), {"members": 2})):
        with pytest.raises(HostileTree):
            read(*paths, **caps)
    for path in (b"/etc/passwd", b"../agent", b"dir/../secret", b"", b"."):
        with pytest.raises(EngineError, match="not a plain relative path"):
            read(path)
    slot.reset()
    assert read(b".app") == {}
