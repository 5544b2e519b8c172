"""Declared parts of the private home are read back after the trial, whatever is there instead of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from boxeval.errors import EngineError, HostileTree
from boxeval.sandbox.images import ImageInfo
from boxeval.sandbox.job import Job, shell
from boxeval.sandbox.ownership import OWNER, Owner
from boxeval.sandbox.slot import Slot, Yard, remove_volume
from boxeval.spec.policy import CollectCaps, Policy
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


@pytest.mark.contract("P22")
def test_tools_that_an_engine_has_filled_in_half_are_filled_anew(
    yard: Yard, policy: Policy, grader_image: ImageInfo, tmp_path: Path
) -> None:
    """It was killed in the middle of that, and fills no volume that has something in it."""
    api = yard.engine.api
    mine = replace(yard, owner=Owner.here(tmp_path), cache_dir=tmp_path)
    api.create_volume(mine.tools_volume, labels={OWNER: mine.owner.home})
    binds = api.create_host_config(binds=[f"{mine.tools_volume}:/tools"], network_mode="none")
    half = api.create_container(
        grader_image.image_id, ["sh", "-c", "printf '\\177ELF' > /tools/shim"], user="0:0", host_config=binds
    )
    try:
        api.start(half)
        assert api.wait(half)["StatusCode"] == 0
        api.remove_container(half)
        slot = Slot.open(mine, "mended", policy)
        try:
            workspace = slot.agent_workspace("m", "agent", put(slot, []))
            box = slot.box("m", "agent", grader_image, workspace, 600)
            box.start()
            assert box.run(Job(("true",), ENV), last=True).exit_code == 0
            box.settle()
            box.remove()
            remove_volume(yard.engine, workspace)
        finally:
            slot.close()
    finally:
        for volume in (mine.tools_volume, mine.fixtures_volume):
            remove_volume(yard.engine, volume)
