"""The suites of `suites/soak` are green, and for the reasons that they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from boxeval.receipts.verify import VerifiedRun
from boxeval.settings import Settings, resource
from boxeval.verdicts.aggregate import aggregate, conclusion
from engine_runs import run


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("soak")


def green(name: str, settings: Settings) -> VerifiedRun:
    """Run one suite; every scored trial ends as expected, and none is void."""
    _, verified = run(resource("suites") / "soak" / f"{name}.yaml", settings, jobs=2)
    assert conclusion(aggregate(verified)) == (0, "every scored trial ended as expected")
    return verified


@pytest.mark.contract("S38", "S41", "S29")
def test_boundary(settings: Settings) -> None:
    verified = green("boundary", settings)
    trials = {trial.task: trial for trial in verified.trials}
    counts = {
        name: (
            trial.metrics["boundary.violationsRolledBack"],
            trial.metrics["boundary.rollbackIncomplete"],
            trial.metrics["boundary.violationsDetected"],
            trial.metrics["boundary.verdictSealed"],
        )
        for name, trial in trials.items()
    }
    assert counts == {"rolled-back": (1, 0, 1, True), "rollback-incomplete": (0, 1, 1, True)}
    for trial in trials.values():
        seen = trial.observations
        boxes = [box for box in (seen.agent, *(step.agent for step in seen.steps)) if box]
        assert [c.exit_code for box in boxes for c in box.commands] == [0]
        assert trial.outcome.failure_class == "writes_boundary_violation"
        assert trial.metrics["verifier.exitCode"] == 0
    enforced = trials["rollback-incomplete"].observations.enforced
    assert enforced is not None
    assert enforced.boundary is not None
    (left,) = enforced.boundary.unrecoverable
    assert left.path == "notes.local"
    assert "excluded from the snapshot" in left.reason


@pytest.mark.contract("S40", "S44", "S28")
def test_load(settings: Settings) -> None:
    trials = {trial.task: trial for trial in green("load", settings).trials}
    solved = {
        name: trial.metrics["task.solved"] for name, trial in trials.items() if trial.metrics["task.solved"]
    }
    assert len(solved) == 5
    for surface, sessions in (("main", ["main.1"]), ("worker", ["main.1", "worker.1"])):
        journal = trials[f"multi-file-bug.{surface}"].observations.journal
        assert journal is not None
        assert sorted(receipt.session for receipt in journal.receipts) == sessions
        # What the agent counted is what went over the wire, though neither is made from the other.
        total = sum(receipt.claimed_total or 0 for receipt in journal.receipts)
        assert total == trials[f"multi-file-bug.{surface}"].metrics["tokens.total"] == 480


@pytest.mark.contract("S43", "S44")
def test_loop(settings: Settings) -> None:
    loops = {}
    for trial in green("loop", settings).trials:
        if trial.observations.journal and trial.observations.journal.loops:
            (loops[trial.task],) = trial.observations.journal.loops
    assert {name: (loop.reason, loop.attempts, loop.repairs_sealed) for name, loop in loops.items()} == {
        "loop.at-once": ("resolved", 1, 0),
        "loop.repaired": ("resolved", 2, 1),
        "loop.bound": ("loop_bound_exhausted", 2, 1),
        "loop.step-failed": ("loop_step_failed", 1, 1),
        "loop.not-reached": ("loop_not_reached", 0, 0),
    }


@pytest.mark.contract("S40", "S42", "S44", "S27", "S30")
def test_chaos(settings: Settings) -> None:
    trials = {trial.task: trial for trial in green("chaos", settings).trials}
    interrupted = trials["chaos.sigint-mid-tool"]
    assert (
        interrupted.metrics
        | {
            "chaos.seed": 7,
            "chaos.faultInjected": True,
            "chaos.exitCode": 130,
            "process.orphanedChildren": 0,
            "receipt.sealed": True,
            "receipt.integrityValid": True,
            "tokens.measured": True,
        }
        == interrupted.metrics
    )
    box = interrupted.observations.agent
    assert box is not None
    assert [(one.number, one.delivered) for one in box.injected] == [(1, True)]
    # The same seed gives the same moment, here and in tests/rules/test_chaos.py.
    any_time = trials["chaos.sigterm-any-time"].observations.agent
    assert any_time is not None
    assert [one.delay_ms for one in any_time.injected] == [629]
    # Memory and disk ran out in one box each, and for nobody else.
    short = [
        (name, bool(box.oom_kills), box.disk_full)
        for name, trial in trials.items()
        if (box := trial.observations.agent) and (box.oom_kills or box.disk_full)
    ]
    assert short == [("chaos.out-of-memory", True, False), ("chaos.disk-full", False, True)]
