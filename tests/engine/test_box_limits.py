"""Each limit of a policy holds inside, is told by name, and costs the host nothing."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable
from pathlib import Path

import pytest
from test_box_ends import ENV, play

from boxeval.sandbox.box import Box
from boxeval.sandbox.engine import Engine
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
    """Known failure B8: the slot is good for the next box, again and again, and our descriptors stay flat."""
    bomb = "bomb() { bomb | bomb & }; bomb; sleep 0.2; exit 0"
    descriptors = []
    for number in range(3):
        _, end = play(make_box(name=f"bomb{number}"), bomb, timeout_ms=15_000)
        assert end.pids_denied > 0
        assert (end.settled, end.survivors) == (True, 0)
        command, _ = play(make_box(name=f"next{number}"), "echo fine")
        assert command.stdout.kept == b"fine\n"
        descriptors.append(open_files())
    # Two boxes a round are kept until the end of the test, each with its connection; the first rounds fill the pool.
    assert descriptors[2] - descriptors[1] <= 2


FILL = r"""
import errno, json, os, subprocess
find = "find / -path /proc -prune -o -path /sys -prune -o -type d -writable -print"
found = subprocess.run(find.split(), capture_output=True, text=True).stdout.split()
told = {}
for place in found:
    if os.path.dirname(place) in told:
        continue
    told[place] = ends = []
    def fill(number):
        with open(f"{place}/f{number // 8}", "ab", buffering=0) as file:
            file.write(b"x" * 500_000)
    def make(number):
        open(f"{place}/e{number}", "x").close()
    for act, most in ((fill, 1000), (make, 0 if place == "/dev/shm" else 1_000_000)):
        done = 0
        try:
            for done in range(most):
                act(done)
            ends += [done, None]
        except OSError as error:
            ends += [done, errno.errorcode[error.errno]]
        if act is fill:
            for name in os.listdir(place):
                os.unlink(f"{place}/{name}")
print(json.dumps(told))
raise SystemExit(7)
"""


def test_every_place_that_can_be_written_has_a_limit_inside_and_costs_the_host_nothing(
    make_box: MakeBox, engine: Engine
) -> None:
    """Known failure C9: all that a candidate can write to, found by looking, filled with bytes and a million files."""
    box = make_box()
    box.start()
    command = box.run(Job(("python3", "-c", FILL), ENV, timeout_ms=60_000), last=True)
    end = box.settle()
    # The resource is named, though the box did not run out of memory.
    assert (command.exit_code, command.signal, end.oom_kills) == (7, None, 0)
    assert set(end.full) >= {"/workspace", "/home/agent", "/tmp"}
    told = json.loads(command.stdout.kept)
    # Pieces of 500,000 bytes that fit, the last one in part, in 16, 4, 4 and 1 MiB; and 2000 inodes.
    most = {"/workspace": 34, "/home/agent": 9, "/tmp": 9, "/dev/shm": 3}
    assert told.keys() == {*most, "/dev/mqueue"}
    for place in most:
        pieces, no_space, files, no_inode = told[place]
        assert (no_space, no_inode) == ("ENOSPC", None if place == "/dev/shm" else "ENOSPC"), place
        assert pieces <= most[place]
        assert files <= 2000, place
    # Queues of messages are no files, and a user may have 800 KiB of them, ten as they come.
    assert told["/dev/mqueue"][1] == "EINVAL"
    assert told["/dev/mqueue"][2] <= 10
    # Nothing went to the engine's disk.
    (listed,) = engine.api.containers(all=True, size=True, filters={"id": box.id})
    assert listed.get("SizeRw", 0) == 0


def test_a_million_files_in_shared_memory_are_memory(make_box: MakeBox) -> None:
    script = "python3 -c \"import os\nfor i in range(1000000): os.mknod(f'/dev/shm/{i}')\""
    command, end = play(make_box(), script, timeout_ms=60_000)
    assert not command.timed_out
    assert end.oom_kills >= 1


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


BUSY = """
import os
for number in range(50):
    if os.fork() == 0:
        while True:
            if number % 8 == 0:
                os.write(1, b"x" * 65536)
while True:
    os.write(1, b"x" * 65536)
"""


def test_a_busy_box_is_no_engine_that_stalls(
    slot: Slot, make_box: MakeBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A candidate that keeps the shim from running could else make its own timeout void, as the engine's fault.

    With all time counted these are 500 ms and more, with the policy's own limits some 6 s.
    """
    limits = slot.policy.limits.model_copy(update={"cpus": 0.03})
    monkeypatch.setattr(slot, "policy", slot.policy.model_copy(update={"limits": limits}))
    command, end = play(make_box(), f"exec python3 -c '{BUSY}'", timeout_ms=2500)
    assert command.timed_out
    assert command.stdout.size_bytes > 0
    assert command.stalled_ms < 250
    assert end.settled
