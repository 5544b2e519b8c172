"""A layer that a box sees, and cannot change; and output of which more is kept than the policy says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from boxeval.formats.fixtures import inline_fixture
from boxeval.sandbox.box import Box
from boxeval.sandbox.images import ImageInfo
from boxeval.sandbox.job import Job, shell
from boxeval.sandbox.slot import Slot, remove_volume
from engine_trees import put

PLACE = "/shown"
ATTEMPT = f"cat {PLACE}/a; echo changed > {PLACE}/a || echo no; echo new > {PLACE}/b || echo no"


@pytest.mark.contract("G64", "G68")
@pytest.mark.parametrize("is_shut", [True, False], ids=["read-only", "control"])
def test_a_box_cannot_change_a_layer_that_it_is_shown(
    slot: Slot, grader_image: ImageInfo, is_shut: bool
) -> None:
    engine = slot.yard.engine
    slot.keeper.request("layer", name="grade.shown", uid=slot.policy.uid, gid=slot.policy.gid)
    slot.keeper.fill_layer("grade.shown", slot.policy, inline_fixture({"a": "as it was\n"}, 100).entries())
    names = [
        slot.grader_workspace("t", "w", (), put(slot, [])),
        slot.layer_volume("t", "shown", "grade.shown"),
    ]
    box = None
    try:
        box = slot.box("t", "grader", grader_image, names[0], 600, read_only={PLACE: names[1]})
        if not is_shut:
            box = _weakened(box)
        box.start()
        end = box.run(Job(shell(ATTEMPT), {"PATH": grader_image.path_env}, stdout_bytes=1), last=False)
        assert end.stdout.size_bytes == len("as it was\nno\nno\n" if is_shut else "as it was\n")
        assert len(end.stdout.kept) == 2  # a byte at each end at least
        flood = Job(shell("head -c 300000 /dev/zero"), {"PATH": grader_image.path_env}, stdout_bytes=400_000)
        assert len(box.run(flood, last=True).stdout.kept) == 300_000
        assert box.settle().settled
    finally:
        if box:
            box.remove()
        for name in names:
            remove_volume(engine, name)


def _weakened(box: Box) -> Box:
    """The same box with that one mount writable."""
    mounts = box.spec.mounts
    spec = replace(box.spec, mounts=replace(mounts, read_only={}, private=mounts.read_only))
    box.remove()
    return Box(box._engine, spec)
