"""Each limit of a policy holds inside, is told by name, and costs the host nothing."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path

import pytest
from test_box_ends import play

from boxeval.sandbox.box import Box
from boxeval.sandbox.images import ImageInfo
from boxeval.sandbox.job import Job, shell
from boxeval.sandbox.slot import Slot, remove_volume
from engine_trees import put

MakeBox = Callable[..., Box]


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


EAT = "python3 -c \"x = bytearray(1 << 20) * 400; print('got it')\""


def test_memory(make_box: MakeBox) -> None:
    command, end = play(make_box(), EAT)
    assert b"got it" not in command.stdout.kept
    assert command.exit_code != 0
    assert end.oom_kills >= 1
    assert end.settled


def test_a_killed_child_leaves_the_parent_s_exit_code(make_box: MakeBox) -> None:
    command, end = play(make_box(), f"{EAT} || :; exit 0")
    assert command.exit_code == 0
    assert end.oom_kills >= 1


@pytest.mark.contract("P18")
def test_forks_without_end(make_box: MakeBox) -> None:
    bomb = "bomb() { bomb | bomb & }; bomb; sleep 1; exit 0"
    descriptors = open_files()
    _, end = play(make_box(), bomb, timeout_ms=15_000)
    assert end.pids_denied > 0
    assert (end.settled, end.survivors) == (True, 0)
    # The slot is good for the next box.
    command, _ = play(make_box(name="next"), "echo fine")
    assert command.stdout.kept == b"fine\n"
    assert open_files() <= descriptors + 4


@pytest.mark.parametrize("place", ["/workspace", "/home/agent", "/tmp", "/dev/shm"])
def test_a_full_disk_is_met_inside(place: str, make_box: MakeBox) -> None:
    fill = f"i=0; while head -c 1000000 /dev/zero > {place}/f$i; do i=$((i+1)); done 2>/tmp/said || :; exit 7"
    command, end = play(make_box(), fill if place != "/tmp" else fill.replace(" 2>/tmp/said", ""))
    assert command.exit_code == 7
    assert place in end.full


def test_inodes_run_out_inside(make_box: MakeBox) -> None:
    script = "python3 -c \"\nfor i in range(10000): open(f'/workspace/{i}', 'w').close()\""
    command, end = play(make_box(), script)
    assert command.exit_code == 1
    assert b"No space left on device" in command.stderr.kept
    assert "/workspace" in end.full


def test_file_size(make_box: MakeBox) -> None:
    command, _ = play(make_box(), "exec head -c 20000000 /dev/zero > /workspace/large")
    assert command.signal == 25


def test_open_files(make_box: MakeBox) -> None:
    script = "python3 -c \"\nfiles = []\nwhile True: files.append(open('/dev/null'))\""
    command, _ = play(make_box(), script)
    assert b"Too many open files" in command.stderr.kept


def test_a_filled_candidate_disk_leaves_the_grader_s_alone(slot: Slot, grader_image: ImageInfo) -> None:
    engine, key = slot.yard.engine, put(slot, [])
    agent = slot.agent_workspace("t", "agent", key)
    grader = slot.grader_workspace("t", "grader", ["agent.agent"], key)
    fill = "for f in a b c d e f; do head -c 7000000 /dev/zero > $f; done || :"
    try:
        for workspace, script, code in ((agent, fill, 0), (grader, "head -c 7000000 /dev/zero > g", 0)):
            box = slot.box(f"t-{workspace[-5:]}", "agent", grader_image, workspace, 600)
            try:
                command, _ = play(box, script)
                assert command.exit_code == code
            finally:
                box.remove()
    finally:
        for workspace in (agent, grader):
            remove_volume(engine, workspace)


def test_the_controller_s_memory_is_flat_under_a_flood(make_box: MakeBox) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    box = make_box()
    box.start()
    command = box.run(
        Job(shell("head -c 200000000 /dev/zero"), {"PATH": "/usr/bin:/bin"}, timeout_ms=60_000), last=True
    )
    box.settle()
    assert command.stdout.size_bytes == 200_000_000
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown_kib < 32 * 1024
