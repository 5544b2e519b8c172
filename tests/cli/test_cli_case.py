"""`run --case-file` from its flags to its exit code, with a controller that only seals what a test wants."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import plan_samples
import run_samples as samples
from boxeval.cli.app import call
from boxeval.errors import EngineMissing, StorageError
from boxeval.receipts.blobs import BlobStore
from boxeval.receipts.keys import load_signing_key
from boxeval.receipts.ledger import Ledger
from boxeval.run.case_extension import supply
from boxeval.run.case_run import prepare_case
from boxeval.run.events import RunEnd, RunRequest, Watcher
from boxeval.run.signals import Interrupted
from boxeval.settings import Settings
from boxeval.spec.trial import Observations
from case_runs import answered, put_messages
from case_samples import write_case, write_script


class Controller:
    """Seals the given observations for whatever case it is asked to run."""

    def __init__(self, *observed: Observations | None, **end: Any) -> None:
        self.observed, self.end = observed, end
        self.request: RunRequest | None = None

    def run_suite(self, request: RunRequest, watcher: Watcher, settings: Settings, *_: Any) -> RunEnd:
        assert request.case is not None and request.case.results_root is not None
        self.request = request
        self.case = prepare_case(request.case, settings, supply(request.case, settings, watcher.note))
        suite = self.case.suite
        planned = plan_samples.plan(
            suite.suite, case=self.case.run, policies=suite.policies, models=suite.scripts
        )
        directory = request.case.results_root / planned.run_id
        watcher.planned(planned, directory, 1)
        key = load_signing_key(settings, request.key_file)
        pairs = zip(planned.trials, self.observed, strict=True)
        seen = {place.trial_id: one for place, one in pairs if one}
        trials = {place.trial_id: place for place in planned.trials}
        ledger = Ledger.create(directory, planned, key, now=lambda: samples.NOON)
        put_messages(ledger.blobs)
        for name, one in seen.items():
            task = planned.task_of(trials[name])
            ledger.append(samples.trial(task, one, trials[name].repeat, trial_id=name))
        return RunEnd(planned.run_id, directory, ledger.close(), **self.end)


def install(monkeypatch: pytest.MonkeyPatch, run_suite: Any) -> None:
    module = ModuleType("boxeval.run.controller")
    module.run_suite = run_suite  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "boxeval.run.controller", module)


def arguments(directory: Path, *more: str, **changes: Any) -> list[str]:
    case = write_case(directory, **changes)
    model = write_script(directory)
    results = str(directory / "results")
    return [
        "run",
        "--case-file",
        str(case),
        "--host",
        "reference",
        "--model",
        model,
        "--results-root",
        results,
        *more,
    ]


@pytest.mark.contract("G61", "G59")
@pytest.mark.parametrize(
    ("observed", "more", "code"),
    [
        ([answered()], [], 0),
        ([answered("failed")], [], 1),
        ([answered(), answered("failed")], ["--trials", "2", "--threshold", "0.5"], 0),
        ([answered(), answered("failed")], ["--trials", "2"], 1),
        ([answered("failed"), samples.fault("command_error")], ["--trials", "2"], 2),
        ([answered("error"), answered("failed")], ["--trials", "2"], 3),
        ([answered("unavailable"), answered("failed")], ["--trials", "2"], 4),
        ([answered(), None], ["--trials", "2"], 2),
    ],
)
def test_exit_codes(
    observed: list[Observations | None],
    more: list[str],
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch, Controller(*observed).run_suite)
    assert call(arguments(tmp_path, *more)) == code


@pytest.mark.slow
@pytest.mark.contract("G61")
def test_a_signal_and_what_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[tuple[dict[str, Any], int]]
    ends = [({"interrupted_by": 2}, 130), ({"interrupted_by": 15}, 143), ({"left_behind": ("x",)}, 70)]
    for number, (end, code) in enumerate(ends):
        install(monkeypatch, Controller(answered(), **end).run_suite)
        assert call(arguments(tmp_path / str(number))) == code


@pytest.mark.contract("G61", "G33")
def test_what_keeps_a_run_from_being_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def raising(error: BaseException) -> Any:
        def run_suite(*_: Any) -> RunEnd:
            raise error

        return run_suite

    install(monkeypatch, raising(EngineMissing("no engine answers")))
    assert call(arguments(tmp_path, "--json")) == 64
    told = json.loads(capsys.readouterr().out)
    assert (told["runId"], told["exitCode"], told["task"]) == (None, 64, "not_assessed")
    assert told["diagnostic"] == {"code": "invalid", "message": "no engine answers"}
    install(monkeypatch, raising(Interrupted(15)))
    assert call(arguments(tmp_path, "--json")) == 143
    assert json.loads(capsys.readouterr().out)["diagnostic"]["code"] == "interrupted"
    install(monkeypatch, raising(StorageError("the disk is full")))
    assert call(arguments(tmp_path, "--json")) == 70
    assert json.loads(capsys.readouterr().out)["diagnostic"]["code"] == "internal"


@pytest.mark.contract("G60", "G53", "G59", "G76")
@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--condition", "enforced"], "only `passive` can be had"),
        (["--threshold", "0"], "must be above 0 and at most 1"),
        (["--threshold", "1.01"], "must be above 0 and at most 1"),
        (["--threshold", "nan"], "must be above 0 and at most 1"),
        (["--trials", "0"], "--trials"),
        (["--host", "codx"], "there is no host `codx`"),
        (["--model", "script:/gone"], "there is no such file"),
        (["--case-id", "other"], "is say-ready"),
        (["--semantic-host", "claude"], "go together"),
        (["--codex-auth-file", "/gone"], "cannot be read"),
        (["--protected-root", "/gone"], "cannot be verified"),
        (["--extension-command-file", "x"], "not from both"),
        (["--extension-source", "x", "--task-verdict-policy", "a.b"], "only with --extension-command-file"),
        (["--runtime-config-file", "/gone"], "runtime configuration cannot be read"),
        (["--run-settings-file", "/gone"], "run settings file cannot be read"),
        (["--project-root", "/gone"], "is not a directory"),
        (["--target", "x", "--smoke"], "--target, --smoke: of suite runs"),
        (["--out", "x"], "--out: of suite runs"),
        (["--bogus"], "No such option"),
    ],
)
def test_flags_that_are_refused(
    more: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    install(monkeypatch, Controller().run_suite)
    assert call(arguments(tmp_path, *more)) == 64
    assert said in capsys.readouterr().err


@pytest.mark.contract("G2", "G57")
def test_a_wrong_case_is_64_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, Controller().run_suite)
    assert call(arguments(tmp_path, fixture={"files": {"../x": ""}})) == 64
    assert f"{tmp_path}/case.json:6:15: fixture.files" in capsys.readouterr().err


def test_flags_of_cases_are_refused_for_suites(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["run", str(tmp_path / "s.yaml"), "--dry", "--threshold", "1"]) == 2
    assert "--threshold, --dry: only with --case-file or --extension-command-file" in capsys.readouterr().err


@pytest.mark.contract("G76", "G59")
def test_flags_beat_the_settings_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("{trials: 2, threshold: 0.5, effort: low, jobs: 3, host: codex}")
    controller = Controller(answered(), answered())
    install(monkeypatch, controller.run_suite)
    assert call(arguments(tmp_path, "--run-settings-file", str(settings), "--effort", "high")) == 0
    request = controller.request
    run = controller.case.run
    assert request and (request.jobs, controller.case.jobs) == (None, 3)
    assert (run.threshold, run.candidate.effort, run.candidate.host) == (0.5, "high", "reference")
    assert controller.case.suite.suite.matrix.repeats == 2
    assert run.settings is not None


@pytest.mark.contract("G50")
def test_codex_flags_are_answered_and_nothing_of_the_auth_file_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, Controller(answered()).run_suite)
    auth = tmp_path / "auth.json"
    auth.write_text('{"OPENAI_API_KEY": "CANARY-0001"}')
    given = ["--codex-bin", "/usr/bin/codex", "--codex-auth-file", str(auth), "--shell-isolation"]
    assert call(arguments(tmp_path, *given)) == 0
    told = capsys.readouterr()
    assert "--codex-bin is not used" in told.err and "goes to the gateway alone" in told.err
    kept = [file.read_bytes() for file in (tmp_path / "results").rglob("*") if file.is_file()]
    assert kept and not any(b"CANARY" in data for data in kept)
    assert "CANARY" not in told.out + told.err


@pytest.mark.contract("G53")
def test_an_auth_file_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    auth = tmp_path / "auth.json"
    for size, code in ((1024 * 1024, 0), (1024 * 1024 + 1, 64)):
        install(monkeypatch, Controller(answered()).run_suite)
        auth.write_bytes(b"{}".ljust(size))
        place = tmp_path / str(size)
        assert call(arguments(place, "--codex-auth-file", str(auth))) == code


@pytest.mark.contract("G71")
def test_the_printed_result_is_the_kept_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, Controller(answered()).run_suite)
    assert call(arguments(tmp_path, "--json")) == 0
    printed = capsys.readouterr().out
    (tmp_path / "result.json").write_text(printed)
    told = json.loads(printed)
    assert json.loads((Path(told["evidencePath"]) / "run.json").read_text()) == told
    assert call(["report", "--result-file", str(tmp_path / "result.json")]) == 0
    assert "say-ready" in capsys.readouterr().out
    assert BlobStore(Path(told["evidencePath"]) / "blobs").get(
        told["cases"][0]["trials"][0]["message"]["sha256"]
    )
