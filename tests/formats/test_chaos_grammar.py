"""What is wrong with a schedule of faults is told with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from suite_samples import changed, load, problems

FAULTS = "tasks.0.faults"
GOOD: dict[str, Any] = {"signal": "SIGINT", "target": "agent", "at": "mid-tool"}


@pytest.mark.contract("S42")
@pytest.mark.parametrize(
    "fault",
    [
        GOOD,
        {**GOOD, "at": {"afterMs": 5}, "seed": 3},
        {**GOOD, "at": {"betweenMs": [1, 2]}, "target": "tool"},
        *({**GOOD, "signal": name} for name in ("SIGTERM", "SIGHUP", "SIGKILL", "SIGSTOP", "SIGCONT")),
        *(
            {"fault": name, "target": "box", "at": "start"}
            for name in ("container-kill", "engine-pause", "out-of-memory", "disk-full")
        ),
        {"fault": "engine-pause", "target": "box", "at": "start", "forMs": 5},
    ],
)
def test_what_can_be_injected(tmp_path: Path, fault: dict[str, Any]) -> None:
    assert len(load(tmp_path, changed((FAULTS, [fault]))).suite.tasks[0].faults) == 1


@pytest.mark.parametrize(
    ("faults", "told"),
    [
        ([{"target": "agent", "at": "start"}], "[0]: needs exactly one of `signal` and `fault`"),
        ([{**GOOD, "fault": "disk-full"}], "[0]: needs exactly one of `signal` and `fault`"),
        ([{**GOOD, "target": "box"}], "[0].target: `box` cannot get a signal; name `agent` or `tool`"),
        (
            [{"fault": "disk-full", "target": "agent", "at": "start"}],
            "[0].target: `disk-full` strikes the `box`",
        ),
        (
            [{**GOOD, "target": "tool", "at": "start"}],
            "[0].at: no tool runs at the start; name a later moment",
        ),
        ([{**GOOD, "forMs": 5}], "[0].forMs: needs `fault: engine-pause`"),
        (
            [{**GOOD, "at": {"betweenMs": [2, 1]}}],
            "[0].at.betweenMs: its first moment is later than its last",
        ),
        ([{**GOOD, "seed": 1}, {**GOOD, "seed": 2}], "[1].seed: is not 1: a schedule has one seed"),
    ],
)
def test_what_cannot_be_meant(tmp_path: Path, faults: list[Any], told: str) -> None:
    assert problems(tmp_path, changed((FAULTS, faults))) == [f"tasks[0].faults{told}"]


@pytest.mark.parametrize(
    ("fault", "place"),
    [
        ({**GOOD, "signal": "SIGUSR1"}, "signal"),
        ({**GOOD, "at": "later"}, "at"),
        ({**GOOD, "at": {"afterMs": -1}}, "at.afterMs"),
        ({**GOOD, "at": {"betweenMs": [1]}}, "at.betweenMs"),
        ({"signal": "SIGINT", "at": "start"}, "target"),
        ({"fault": "fire", "target": "box", "at": "start"}, "fault"),
    ],
)
def test_what_is_no_fault(tmp_path: Path, fault: dict[str, Any], place: str) -> None:
    found = problems(tmp_path, changed((FAULTS, [fault])))
    assert found
    assert all(place.split(".")[0] in problem for problem in found), found


def test_steps_have_faults_of_their_own(tmp_path: Path) -> None:
    def steps(*faults: Any) -> Any:
        return ("tasks.0.steps", [{"id": "a", "command": "true", "faults": list(faults)}])

    loaded = load(tmp_path, changed(steps(GOOD), ("tasks.0.runner", None)))
    assert len(loaded.suite.tasks[0].steps[0].faults) == 1
    found = problems(tmp_path, changed((FAULTS, [GOOD]), steps(), ("tasks.0.runner", None)))
    assert found == ["tasks[0].faults: cannot stand beside `steps`: put them into the step that they strike"]
    wrong = problems(
        tmp_path, changed(steps(GOOD, {**GOOD, "target": "box", "seed": 3}), ("tasks.0.runner", None))
    )
    assert wrong == [
        "tasks[0].steps[0].faults[1].target: `box` cannot get a signal; name `agent` or `tool`",
        "tasks[0].steps[0].faults[1].seed: is not 0: a schedule has one seed",
    ]
