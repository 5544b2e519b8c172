"""The boundary suite of `suites/soak` is green, and for the reason that it says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from boxeval.settings import Settings, resource
from boxeval.verdicts.aggregate import aggregate, conclusion
from engine_runs import forget, run, settings_in


@pytest.fixture
def settings(tmp_path: Path, cache: Path) -> Iterator[Settings]:
    settings = settings_in(tmp_path / "home", cache)
    yield settings
    forget(settings)


@pytest.mark.contract("S38", "S41", "S29")
def test_boundary(settings: Settings) -> None:
    _, verified = run(resource("suites") / "soak" / "boundary.yaml", settings, jobs=2)
    assert conclusion(aggregate(verified)) == (0, "every scored trial ended as expected")
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
