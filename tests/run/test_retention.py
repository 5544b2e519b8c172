"""Old runs go when somebody says which; nothing else in the directory does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import run_samples as samples
from boxeval.cli.app import call
from boxeval.errors import UsageError
from boxeval.receipts.keys import load_signing_key
from boxeval.receipts.ledger import Ledger
from boxeval.run.events import RunRequest
from boxeval.run.remember import recall, remember
from boxeval.run.retention import prune
from boxeval.settings import Settings, load_settings


@pytest.fixture
def settings() -> Settings:
    """Runs of 0, 1, 2 and 3 days ago, by age: run-0 to run-3."""
    settings = load_settings()
    for days in range(4):
        made = (datetime.now(UTC) - timedelta(days=days, hours=1)).isoformat().replace("+00:00", "Z")
        plan = samples.plan(samples.task(), run_id=f"run-{days}", created_at=made)
        samples.write_run(
            settings.runs_dir / plan.run_id, load_signing_key(settings), plan, {"fix-base-1": samples.seen()}
        )
        remember(settings, plan.run_id, RunRequest(suite=Path("s.yaml")))
    return settings


def left(settings: Settings) -> list[str]:
    return sorted(path.name for path in settings.runs_dir.iterdir())


@pytest.mark.contract("P22")
@pytest.mark.parametrize(
    ("keep", "days", "stay"),
    [
        (1, None, ["run-0"]),
        (0, None, []),
        (9, None, ["run-0", "run-1", "run-2", "run-3"]),
        (None, 2, ["run-0", "run-1"]),
        (3, 1, ["run-0", "run-1", "run-2"]),
        (1, 3, ["run-0", "run-1", "run-2"]),
    ],
)
def test_the_newest_and_the_young_stay(
    settings: Settings, keep: int | None, days: int | None, stay: list[str]
) -> None:
    would = prune(settings, keep=keep, older_than_days=days, dry=True)
    assert len(left(settings)) == 4
    assert prune(settings, keep=keep, older_than_days=days) == would
    assert left(settings) == stay
    for name in stay:
        recall(settings, name)
    for run in would:
        assert run.size_bytes > 1000
        with pytest.raises(UsageError):
            recall(settings, run.run_id)


def test_a_run_under_way_and_what_is_no_run_stay(settings: Settings) -> None:
    plan = samples.plan(samples.task(), run_id="run-live", created_at=samples.NOON)
    ledger = Ledger.create(settings.runs_dir / "run-live", plan, load_signing_key(settings))
    (settings.runs_dir / "notes").mkdir()
    (settings.runs_dir / "notes" / "plan.json").write_text("{}")
    (settings.runs_dir / "file").write_text("x")
    (settings.runs_dir / "link").symlink_to(settings.runs_dir / "run-0")
    prune(settings, keep=0, older_than_days=None)
    assert left(settings) == ["file", "link", "notes", "run-live"]
    ledger.release()


def test_on_the_command_line(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["runs", "prune"]) == 2
    assert "--keep N" in capsys.readouterr().err
    assert call(["runs", "prune", "--keep", "3", "--dry"]) == 0
    assert capsys.readouterr().out.startswith("would remove run-3 ")
    assert call(["runs", "prune", "--keep", "3"]) == 0
    assert left(settings) == ["run-0", "run-1", "run-2"]
