"""The session ledger: one line a session, best effort."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

import run_samples as samples
from boxeval.run.sessions import FILE, append_session, end_of, session
from boxeval.spec.models import TrialBudget
from boxeval.spec.policy import Policy
from boxeval.spec.trial import Trial

POLICY = Policy(version=1, id="p", budget=TrialBudget(tokens=500, cost_usd=0.5))
TASK = samples.task()


def trial(**changes: Any) -> Trial:
    return samples.trial(TASK, samples.seen(**changes))


@pytest.mark.contract("V16")
@pytest.mark.parametrize(
    ("changes", "end"),
    [
        ({"traffic": samples.traffic()}, "completed"),
        ({"traffic": samples.traffic(error="scripted_error: 500")}, "completed"),
        ({"traffic": samples.traffic(refused=True)}, "refusal"),
        ({"traffic": samples.traffic(), "agent": samples.box(samples.timed_out())}, "session_timeout"),
        ({"traffic": samples.traffic(), "grader": samples.box(samples.timed_out())}, "observer_timeout"),
        ({"traffic": samples.traffic(error="x"), "agent": samples.box(samples.command(1))}, "api_error"),
        ({"traffic": samples.traffic(limit="x"), "agent": samples.box(samples.command(1))}, "api_error"),
        ({"traffic": samples.traffic(), "agent": samples.box(samples.command(1))}, "error"),
        ({"traffic": samples.traffic(), "cancelled": True}, "aborted"),
    ],
)
def test_a_session_ends_in_one_of_these_ways(changes: dict[str, Any], end: str) -> None:
    assert end_of(trial(**changes)) == end


@pytest.mark.contract("V16", "V15")
def test_a_line_has_key_budget_time_end_liveness_and_bill(tmp_path: Path) -> None:
    one = trial(traffic=samples.traffic(cost_usd=0.25, model_ms=70, background_requests=3))
    cut = trial(traffic=samples.traffic(unmeasured_requests=1))
    for made in (one, cut, trial()):
        append_session(tmp_path, made, TASK, POLICY)
    place = tmp_path / FILE
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    first, second = map(json.loads, place.read_text().splitlines())
    assert first["key"] == f"{TASK.task}[{TASK.target}]#1"
    assert first["budget"] == {"tokens": 500, "costUsd": 0.5, "ms": TASK.agent_timeout_ms}
    assert first["end"] == "completed"
    assert first["elapsedMs"] == one.steps_ms.get("run", 0)
    assert first["liveness"] == {"requests": 2, "backgroundRequests": 3, "modelMs": 70}
    assert first["billed"] == {"tokens": 240, "usd": 0.25, "costKnown": True}
    assert second["billed"] == {"tokens": None, "usd": None, "costKnown": False}


@pytest.mark.contract("V16")
def test_a_line_that_cannot_be_written_is_lost_and_nothing_else(tmp_path: Path) -> None:
    append_session(tmp_path / "missing", trial(traffic=samples.traffic()), TASK, POLICY)
    (tmp_path / FILE).symlink_to(tmp_path / "elsewhere")
    append_session(tmp_path, trial(traffic=samples.traffic()), TASK, POLICY)
    assert not (tmp_path / "elsewhere").exists()
    assert session(trial(traffic=samples.traffic()), TASK, POLICY)["attempt"] == 1
