"""The wall clock steps forward or back (injected; the system's is never set): nothing of a run is decided by it.

What reads the wall clock: times in receipts, the span of a key, run ids. What must not: deadlines, what a sweep takes.
"""

from __future__ import annotations

import runpy
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import run_samples as samples
from boxeval.errors import TamperError
from boxeval.receipts.ledger import Ledger
from boxeval.receipts.trust import Trust
from boxeval.receipts.verify import verify
from boxeval.sandbox.ownership import DEADLINE, Owner
from boxeval.settings import resource
from boxeval.verdicts.aggregate import aggregate
from tamper_cases import KEY, MINE, PLAN, TRUST, observed

DAY_S = 24 * 3600.0
BEFORE, NOON, AFTER = "2025-01-01T11:00:00.000Z", samples.NOON, "2025-01-01T13:00:00.000Z"


def sealed(directory: Path, *times: str) -> Path:
    """A run that was opened and closed at these times."""
    clock: Iterator[str] = iter(times)
    ledger = Ledger.create(directory, PLAN, KEY, now=lambda: next(clock))
    found = observed(ledger)
    for place in PLAN.trials:
        ledger.append(samples.trial(PLAN.task_of(place), found[place.task], place.repeat))
    ledger.close()
    return directory


@pytest.mark.parametrize("step_s", [-400 * DAY_S, 8 * DAY_S, 400 * DAY_S])
def test_no_step_makes_a_sweep_take_what_is_in_use(
    step_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = Owner.here(tmp_path)
    labels = owner.labels("run-1", "agent", lifetime_s=900)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + step_s)
    boot_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert not owner.is_orphan(labels, boot_s)
    assert int(labels[DEADLINE]) - boot_s == pytest.approx(900, abs=5)
    # A day of uptime later its time is over, whatever the clock on the wall says.
    assert owner.is_orphan(labels, boot_s + DAY_S)


HOUR_S = 3600.0


def test_no_step_makes_a_fixture_look_unused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """300 are cached, of which one box has the first mounted: it goes by uptime alone, on this start of the machine."""
    wanted = runpy.run_path(str(resource("images") / "keeper" / "wanted.py"))
    now = time.time()
    for step_s in (-400 * DAY_S, 400 * DAY_S):
        monkeypatch.setattr(time, "time", lambda step_s=step_s: now + step_s)
        (tmp_path / "digest").touch()
        wanted["mark"](tmp_path / "digest")
        up_s = wanted["uptime_s"]()
        assert up_s == pytest.approx(time.clock_gettime(time.CLOCK_BOOTTIME), abs=5)
        marks = {"mounted": (tmp_path / "digest").stat().st_mtime, **{str(n): up_s for n in range(299)}}
        assert wanted["unwanted"](marks, up_s, 256, DAY_S) == []
    up_s = 5 * DAY_S
    marks = {
        "new": up_s - HOUR_S,
        "old": up_s - 25 * HOUR_S,
        "older": up_s - 26 * HOUR_S,
        "before": up_s + HOUR_S,
    }
    assert wanted["unwanted"](marks, up_s, 0, DAY_S) == ["before", "older", "old"]
    assert wanted["unwanted"](marks, up_s, 2, DAY_S) == ["before", "older"]
    assert wanted["unwanted"](marks, up_s, 4, DAY_S) == []


@pytest.mark.parametrize(("opened", "closed"), [(NOON, BEFORE), (NOON, AFTER)], ids=["back", "forward"])
def test_a_step_during_a_run_changes_no_verdict(opened: str, closed: str, tmp_path: Path) -> None:
    run = verify(sealed(tmp_path / "run", opened, closed), TRUST)
    assert run.complete
    assert [trial.outcome.task for trial in run.trials] == ["failed", "passed"]
    usual = aggregate(verify(sealed(tmp_path / "usual", NOON, NOON), TRUST))
    assert aggregate(run).totals == usual.totals


@pytest.mark.parametrize(
    ("opened", "closed", "word"),
    [(BEFORE, NOON, "opened"), (NOON, BEFORE, "closed"), (AFTER, NOON, "opened")],
)
def test_a_step_out_of_a_key_s_span_is_refused_by_name(
    opened: str, closed: str, word: str, tmp_path: Path
) -> None:
    span = {"not_before": "2025-01-01T11:30:00Z", "not_after": "2025-01-01T12:30:00Z"}
    trust = Trust((MINE.model_copy(update=span),))
    with pytest.raises(TamperError, match=rf"the run {word} at .*, when test .* was not in force"):
        verify(sealed(tmp_path / "run", opened, closed), trust)
