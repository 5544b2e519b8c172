"""A sample of `make crash`: kills at points that find the engine and the ledger in different states; and that what it
counts would be seen.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
pytestmark = pytest.mark.engine

# One home and one undisturbed run serve all of them. Each try is a process of its own, so what one breaks ends with it.
SCRIPT = f"""
import json, os, sys
from dataclasses import asdict
sys.path.insert(0, {str(HERE)!r})
import crash
with crash.ground() as place:
    for point, before in json.load(sys.stdin):
        child = os.fork()
        if not child:
            exec(before)
            print(json.dumps(asdict(crash.attempt(place, point, 7))), flush=True)
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            sys.exit(1)
"""
CLOSING = "crash.WAYS = ('sweep',)\ncrash.NTH = (2,)\n"
SWEEP_ONLY = "crash.WAYS = ('sweep',)\ncrash.GONE_S = 1\n"
NOTHING_REMOVED = "from boxeval.run import controller\ncontroller.clean = lambda *_: ()\n"
NOTHING_RUN = "from boxeval.receipts import recovery\nrecovery.unsettled = lambda *_: ()\n"


def tries(cache: Path, *wanted: tuple[str, str]) -> list[dict[str, Any]]:
    """What one kill at each point came to; Python before it may choose how, or break what is measured."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=json.dumps(wanted),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert cache.is_dir()
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.contract("P16", "P19")
def test_a_kill_at_any_point_loses_doubles_and_leaves_nothing(cache: Path) -> None:
    """With nothing of it on the engine, an agent's box, a grader's box, half a line, and all sealed but not removed."""
    points = ("before-create", "mid-tool", "mid-grade", "mid-append", "before-removal")
    made = tries(cache, *((point, "") for point in points))
    assert [one["point"] for one in made] == list(points)
    assert {one["way"] for one in made} >= {"watchdog", "sweep"}
    for one in made:
        assert one["reached"], one
        assert (one["lost"], one["duplicates"], one["left"]) == (0, 0, 0), one
        assert one["same"], one


def test_a_run_that_has_only_to_be_closed_is_swept_too_and_what_goes_wrong_is_seen(cache: Path) -> None:
    closed, leaves, differs = tries(
        cache,
        ("after-append", CLOSING),  # both trials are sealed, and the watchdog is dead too
        ("mid-tool", SWEEP_ONLY + NOTHING_REMOVED),
        ("mid-tool", SWEEP_ONLY + NOTHING_RUN),
    )
    assert (closed["reached"], closed["same"], closed["left"]) == (True, True, 0), closed
    assert leaves["reached"]
    assert leaves["left"] > 0, leaves
    assert differs["reached"]
    assert differs["same"] is False, differs
