"""`boxeval soak` repeats suites in one controller, keeps what was not good, and says what it used."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
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


@pytest.mark.contract("V34")
def test_a_signal_ends_a_soak_with_what_there_is(settings: Settings, tmp_path: Path) -> None:
    """Known failure B11 with a pipe that nobody closes; tests/crash has a terminal, tests/faults has /dev/null."""
    suite, out = write_suite(tmp_path, SUITE % "failed"), tmp_path / "soak.json"
    env = {**os.environ, "BOXEVAL_HOME": str(settings.data_dir.parent)}
    command = [sys.executable, "-m", "boxeval", "soak", str(suite), "--hours", "1", "--out", str(out)]
    with subprocess.Popen(
        command,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert any("KiB of memory" in line for line in process.stderr), "no round was finished"
        process.send_signal(signal.SIGINT)
        told, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert told.startswith("GOOD: ")
    report = SoakReport.model_validate_json(out.read_text())
    assert report.interrupted_by == signal.SIGINT
    assert len(report.samples) >= 1
