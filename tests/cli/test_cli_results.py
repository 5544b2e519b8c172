"""report, verify, show and runs, with their exit codes. None needs an engine."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from cli_process import boxeval

import report_samples
import run_samples as samples
from boxeval.cli.app import call
from boxeval.receipts.keys import export_public, load_signing_key, revoke
from boxeval.receipts.ledger import Ledger
from boxeval.settings import load_settings

PLAN = samples.plan(samples.task("ok"), samples.task("bad"), run_id="run-1")
PASSED, FAILED = samples.seen(), samples.seen(grader=samples.box(samples.command(1)))
VOID = samples.fault("command_error", "no such image")


def sealed(**observed: object) -> Path:
    """A run of this machine, signed with its own key."""
    settings = load_settings()
    directory = settings.runs_dir / PLAN.run_id
    settings.runs_dir.mkdir(parents=True)
    seen = {f"{name}-base-1": value for name, value in observed.items()}
    samples.write_run(directory, load_signing_key(settings), PLAN, seen)  # type: ignore[arg-type]
    return directory


def test_report_of_a_red_run_is_still_a_good_report(capsys: pytest.CaptureFixture[str]) -> None:
    sealed(ok=PASSED, bad=FAILED)
    assert call(["report", "run-1"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("RED: 1 of 2 scored trials did not end as expected\n")
    assert "boxeval show run-1 bad-base-1" in text


@pytest.mark.contract("S33")
@pytest.mark.parametrize("form", ["text", "json", "md", "junit"])
def test_every_format_by_the_command(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    sealed(ok=PASSED, bad=FAILED)
    assert call(["report", "run-1", "--format", form]) == 0
    assert "bad[base]#1" in capsys.readouterr().out


@pytest.mark.parametrize("observed", [{"ok": PASSED, "bad": VOID}, {"ok": PASSED}])
def test_incomplete_runs_are_told_and_exit_3(
    observed: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    sealed(**observed)
    assert call(["report", "run-1"]) == 3
    text = capsys.readouterr().out
    assert text.startswith("INCOMPLETE: ")
    assert "bad[base]#1" in text


@pytest.mark.contract("S2", "S3")
@pytest.mark.parametrize("name", ["", ".", "..", "a\\b", "a\0b"])
@pytest.mark.parametrize("command", ["report", "verify", "show"])
def test_ids_that_cannot_be_one_are_usage_errors(
    name: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call([command, name]) == 2
    assert capsys.readouterr().err.startswith("boxeval: ")


@pytest.mark.contract("S2", "S3")
@pytest.mark.parametrize("name", ["nothing", "./nothing", "/nonexistent/run"])
@pytest.mark.parametrize("command", ["report", "verify", "show"])
def test_unknown_runs_are_one_clear_line_and_1(
    name: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call([command, name]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert name in err


def test_a_run_by_path_needs_a_trusted_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report_samples.all_good(tmp_path / "run")
    run = str(tmp_path / "run")
    assert call(["report", run]) == 4
    assert call(["verify", run]) == 4
    assert "TAMPERED or untrusted" in capsys.readouterr().err
    trust = tmp_path / "trust.json"
    key = report_samples.KEY.trusted("ci").model_dump(mode="json")
    trust.write_text(json.dumps({"format": "boxeval.trust/1", "keys": [key]}))
    assert call(["verify", run, "--trust", str(trust)]) == 0
    assert "GOOD: nothing was changed" in capsys.readouterr().out
    assert call(["report", run, "--trust", str(trust)]) == 0
    assert call(["verify", run, "--trust", str(tmp_path / "none.json")]) == 2


def test_verify_codes_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    directory = sealed(ok=PASSED, bad=FAILED)
    assert call(["verify", "run-1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["state"], found["planned"], found["receipts"], found["missing"]) == ("good", 2, 2, [])
    assert found["checkpoint"] == (directory / "checkpoint").read_text().strip()

    lines = (directory / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    (directory / "ledger.jsonl").write_bytes(b"".join(lines[:2]))
    (directory / "checkpoint").unlink()
    assert call(["verify", "run-1", "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert (found["state"], found["missing"]) == ("incomplete", ["bad[base]#1"])

    (directory / "ledger.jsonl").write_bytes(b"".join([lines[0], lines[2]]))
    assert call(["verify", "run-1", "--json"]) == 4
    found = json.loads(capsys.readouterr().out)
    assert found["state"] == "tampered"
    assert "line 2" in found["problems"][0]


def test_verify_against_a_pinned_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = sealed(ok=PASSED, bad=FAILED)
    line = (directory / "checkpoint").read_text().strip()
    pinned = tmp_path / "pinned"
    pinned.write_text(line + "\n")
    assert call(["verify", "run-1", "--checkpoint", line]) == 0
    assert call(["verify", "run-1", "--checkpoint", str(pinned)]) == 0
    pinned.write_text(line.replace("run-1", "run-2"))
    assert call(["verify", "run-1", "--checkpoint", str(pinned)]) == 4
    assert call(["verify", "run-1", "--checkpoint", str(tmp_path / "none")]) == 2
    assert "checkpoint" in capsys.readouterr().err


def test_a_revoked_key_refuses_its_runs(capsys: pytest.CaptureFixture[str]) -> None:
    sealed(ok=PASSED, bad=PASSED)
    settings = load_settings()
    revoke(settings, load_signing_key(settings).keyid)
    assert call(["report", "run-1"]) == 4
    assert "revoked" in capsys.readouterr().err


def test_the_key_of_the_environment_is_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sealed(ok=PASSED, bad=PASSED)
    settings = load_settings()
    key = next((settings.keys_dir / "signing").glob("*.pem"))
    assert json.loads(export_public(settings, key.stem))["keys"][0]["keyid"] == key.stem
    (tmp_path / "ci.pem").write_bytes(key.read_bytes())
    (tmp_path / "ci.pem").chmod(0o600)
    shutil.rmtree(settings.keys_dir)
    assert call(["report", "run-1"]) == 4
    monkeypatch.setenv("BOXEVAL_KEY_FILE", str(tmp_path / "ci.pem"))
    assert call(["report", "run-1"]) == 0


@pytest.mark.contract("P26")
def test_show_a_run_and_a_trial(capsys: pytest.CaptureFixture[str]) -> None:
    sealed(ok=PASSED, bad=FAILED)
    assert call(["show", "run-1"]) == 0
    assert "ok-base-1" in capsys.readouterr().out
    for name in ("bad[base]#1", "bad-base-1", "bad"):
        assert call(["show", "run-1", name]) == 0
        text = capsys.readouterr().out
        assert text.startswith("bad[base]#1  failed\n")
        assert text.index("stage") < text.index("run    ")
        told = text.split("metrics\n")[1]
        assert "result.pass" in told and "chaos.seed" not in told
        assert re.search(r"  and \d+ that are unknown: `boxeval show RUN TRIAL --json` has all\n$", told)
    assert call(["show", "run-1", "bad", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["outcome"]["failureClass"] == "verifier_failed"
    assert call(["show", "run-1", "typo"]) == 2
    assert "it has ok[base]#1, bad[base]#1" in capsys.readouterr().err


def test_show_a_missing_trial(capsys: pytest.CaptureFixture[str]) -> None:
    sealed(ok=PASSED)
    assert call(["show", "run-1", "bad[base]#1"]) == 3
    assert "no receipt" in capsys.readouterr().err


@pytest.mark.contract("P26")
def test_runs_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["runs"]) == 0
    assert capsys.readouterr().out == "no runs yet\n"
    directory = sealed(ok=PASSED, bad=FAILED)
    (directory.parent / "run-2").mkdir()
    Ledger.create(directory.parent / "run-3", PLAN, load_signing_key(load_settings()))
    for command in (["runs"], ["runs", "ls"]):
        assert call(command) == 0
        rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:4]]
        assert rows[0][:4] == ["run-1", "s", "closed", "2/2"]
        assert rows[1][:3] == ["run-2", "unknown", "unreadable"]
        assert rows[2][:6] == ["run-3", "s", "open", "or", "interrupted", "0/2"]
    assert call(["runs", "--json"]) == 0
    assert [run["state"] for run in json.loads(capsys.readouterr().out)] == [
        "closed",
        "unreadable",
        "open or interrupted",
    ]


@pytest.mark.slow
@pytest.mark.contract("S46")
@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"FORCE_COLOR": "1", "TERM": "xterm-256color"}])
def test_no_escape_codes_without_a_terminal(environ: dict[str, str]) -> None:
    sealed(ok=PASSED, bad=FAILED)
    done = boxeval("show", "run-1", **environ)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout + done.stderr
