"""`boxeval soak` repeats suites in one controller, keeps what was not good, and says what it used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from boxeval.cli.app import call
from boxeval.settings import Settings
from boxeval.spec.soak import SoakReport
from engine_runs import write_suite

SUITE = """\
    tasks:
      - id: one
        workspace: {kind: inline, files: {}}
        runner: {kind: external-command, command: "true"}
        verify: {commands: ["test -e there"]}
        expect: %s
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("soak")


@pytest.mark.parametrize(("expect", "code", "kept"), [("failed", 0, 0), ("passed", 1, 2)])
def test_rounds_are_counted_and_only_bad_runs_are_kept(
    expect: str,
    code: int,
    kept: int,
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("BOXEVAL_HOME", str(settings.data_dir.parent))
    suite = write_suite(tmp_path / expect, SUITE % expect)
    out = tmp_path / "soak.json"
    assert call(["soak", str(suite), str(suite), "--hours", "0.00001", "--out", str(out)]) == code
    report = SoakReport.model_validate_json(out.read_text())
    assert [one.code for one in report.rounds] == [code] * 2
    (sample,) = report.samples
    assert sample.memory_kib > 10_000
    assert sample.descriptors >= 3
    assert sample.engine_objects >= 2, "the caches"
    assert json.loads(out.read_text())["slopes"]["descriptors"]["perHour"] is None
    place = settings.data_dir / "soak"
    runs = [path for path in place.iterdir() if path.name.startswith(report.started_at.replace(":", ""))]
    assert len(runs) == kept
    assert capsys.readouterr().out.startswith("RED" if code else "GOOD")


@pytest.mark.parametrize("hours", ["0", "-1", "nan", "inf"])
def test_a_time_that_makes_no_sense_is_refused(hours: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["soak", "--hours", hours]) == 2
    assert "--hours" in capsys.readouterr().err
