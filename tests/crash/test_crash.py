"""A sample of `make crash`: one kill at every named point; and that what it counts would be seen."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
THIRDS = (
    ("before-create", "created", "started", "mid-tool"),
    ("settled", "collected", "mid-grade", "before-seal"),
    ("mid-append", "after-append", "before-removal"),
)
pytestmark = pytest.mark.engine


def tries(cache: Path, seed: int, *points: str, set_up: str = "", spoil: str = "") -> list[dict[str, Any]]:
    """What crash.py tells of one kill at each point. `spoil` is run before it, to break what it measures."""
    start = f"import sys; sys.path.insert(0, {str(HERE)!r}); import crash"
    script = f"{start}\n{set_up}\n{spoil}\nsys.exit(crash.main())"
    arguments = ["--tries", "1", "--workers", "1", "--seed", str(seed), "--json", "--points", *points]
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert cache.is_dir()
    assert done.stderr == ""
    assert (done.returncode == 0) is (not spoil), done.stdout
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.contract("P16", "P19")
@pytest.mark.parametrize("points", THIRDS, ids=lambda points: points[0])
def test_a_kill_at_any_point_loses_doubles_and_leaves_nothing(cache: Path, points: tuple[str, ...]) -> None:
    made = tries(cache, 7, *points)
    assert [one["point"] for one in made] == list(points)
    for one in made:
        assert one["reached"], one
        assert (one["lost"], one["duplicates"], one["left"]) == (0, 0, 0), one
        assert one["same"], one


def test_a_run_that_has_only_to_be_closed_is_swept_all_the_same(cache: Path) -> None:
    """Both trials are sealed, and the watchdog is dead too."""
    spoil = "crash.WAYS = ('sweep',)\ncrash.NTH = (2,)\ncrash.GONE_S = 1"
    (made,) = tries(cache, 7, "after-append", set_up=spoil)
    assert (made["reached"], made["same"], made["left"]) == (True, True, 0), made


SWEEP_ONLY = "crash.WAYS = ('sweep',)\ncrash.GONE_S = 1\n"


@pytest.mark.parametrize(
    ("spoil", "field", "value"),
    [
        # Nobody removes anything.
        (SWEEP_ONLY + "from boxeval.run import controller\ncontroller.clean = lambda *_: ()", "left", 7),
        # A resumed run runs nothing.
        (
            SWEEP_ONLY + "from boxeval.receipts import recovery\nrecovery.unsettled = lambda *_: ()",
            "same",
            False,
        ),
    ],
    ids=["leftovers", "verdicts"],
)
def test_what_goes_wrong_is_seen(cache: Path, spoil: str, field: str, value: object) -> None:
    (made,) = tries(cache, 7, "mid-tool", spoil=spoil)
    assert made["reached"]
    assert made[field] == value or (field == "left" and made["left"] > 0), made
