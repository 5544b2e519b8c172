"""`run` from its flags to its exit code, with a controller that only seals what a test wants."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import run_samples as samples
from boxeval.cli.app import call
from boxeval.receipts.keys import load_signing_key, make_key
from boxeval.receipts.recovery import Recovery
from boxeval.receipts.trust import Trust
from boxeval.run.events import RunEnd, RunRequest, Watcher
from boxeval.run.remember import remember
from boxeval.settings import Settings, load_settings
from boxeval.spec.trial import Observations

PASSED, FAILED = samples.seen(), samples.seen(grader=samples.box(samples.command(1)))
VOID = samples.fault("command_error", "no such image")


class Controller:
    """Stands in for boxeval.run.controller: seals one run of the given observations."""

    def __init__(self, observed: list[Observations | None], **end: Any) -> None:
        self.observed = observed
        self.end = end
        self.close = True
        self.tasks: list[Any] = [samples.task(f"t{n}") for n in range(len(observed))]
        self.thresholds: tuple[Any, ...] = ()
        self.request: RunRequest | None = None

    def run_suite(self, request: RunRequest, watcher: Watcher, settings: Settings, *_: object) -> RunEnd:
        self.request = request
        plan = samples.plan(*self.tasks, run_id="run-1", thresholds=self.thresholds)
        directory = request.out or settings.runs_dir / "run-1"
        seen = {f"t{n}-base-1": one for n, one in enumerate(self.observed) if one}
        watcher.note("preparing")
        watcher.planned(plan, directory, 2)
        for place in plan.trials:
            watcher.started(place, "stage")
            if place.trial_id in seen:
                watcher.finished(samples.trial(plan.task_of(place), seen[place.trial_id]))
        key = load_signing_key(settings, request.key_file)
        checkpoint = samples.write_run(directory, key, plan, seen, close=self.close)
        return RunEnd("run-1", directory, checkpoint, **self.end)


@pytest.fixture
def suite(tmp_path: Path) -> str:
    (tmp_path / "s.yaml").write_text("version: 2\n")
    return str(tmp_path / "s.yaml")


def install(controller: Controller, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("boxeval.run.controller")
    module.run_suite = controller.run_suite  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "boxeval.run.controller", module)


@pytest.mark.contract("S2", "P25")
@pytest.mark.parametrize(
    ("observed", "code"),
    [
        ([PASSED, PASSED], 0),
        ([PASSED, FAILED], 1),
        ([PASSED, VOID], 3),
        ([FAILED, VOID], 1),
        ([PASSED, None], 3),
    ],
)
def test_exit_codes_follow_the_verdicts(
    observed: list[Observations | None], code: int, suite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(Controller(observed), monkeypatch)
    assert call(["run", suite]) == code


def test_a_failure_as_intended_is_good(
    suite: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    controller = Controller([PASSED, FAILED])
    controller.tasks[1] = samples.task("t1", expect="failed", expect_class="verifier_failed")
    install(controller, monkeypatch)
    assert call(["run", suite]) == 0
    said = capsys.readouterr()
    assert "t1[base]#1  failed as intended: verifier_failed" in said.out
    assert "[2/2] t1[base]#1: failed as intended: verifier_failed: command 1 of 1 exited 1: true" in said.err


@pytest.mark.contract("S4", "S16")
@pytest.mark.parametrize(("limit_ms", "code"), [(1000, 1), (1234, 0)])
def test_thresholds_fail_a_run_whose_trials_passed(
    limit_ms: int, code: int, suite: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    controller = Controller([PASSED, PASSED])
    controller.thresholds = (samples.wants("latency.wallMs", "gt", limit_ms),)
    install(controller, monkeypatch)
    assert call(["run", suite]) == code
    assert ("latency.wallMs gt 1000  met by 2 trials" in capsys.readouterr().out) is (code == 1)


def test_a_signal_beats_the_verdict(suite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    install(Controller([PASSED], interrupted_by=2), monkeypatch)
    assert call(["run", suite]) == 130


def test_a_second_signal_leaves_the_ledger_open_and_that_is_no_tampering(
    suite: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    controller = Controller([PASSED, None], interrupted_by=2)
    controller.close = False
    install(controller, monkeypatch)
    assert call(["run", suite]) == 130
    said = capsys.readouterr()
    assert said.out.startswith("INCOMPLETE")
    assert "the closing line is missing" in said.out
    assert said.out.splitlines()[-1] == f"run: {load_settings().runs_dir / 'run-1'}"
    assert "checkpoint" not in said.err


def test_what_is_left_behind_is_told(
    suite: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(Controller([PASSED], left_behind=("container boxeval-\x1b[2J",)), monkeypatch)
    assert call(["run", suite]) == 3
    assert "boxeval: left behind on the engine: container boxeval-\\x1b[2J;" in capsys.readouterr().err


def test_progress_and_report_go_apart(
    suite: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(Controller([PASSED, FAILED]), monkeypatch)
    assert call(["run", suite]) == 1
    said = capsys.readouterr()
    directory = load_settings().runs_dir / "run-1"
    assert said.err.splitlines() == [
        "preparing",
        f"s: 2 trials, 2 at a time, in {directory}",
        "started t0[base]#1",
        "[1/2] t0[base]#1: passed",
        "started t1[base]#1",
        "[2/2] t1[base]#1: failed: verifier_failed: command 1 of 1 exited 1: true",
    ]
    lines = said.out.splitlines()
    assert lines[0] == "RED: 1 of 2 scored trials did not end as expected"
    assert lines[-2] == f"run: {directory}"
    assert lines[-1] == (directory / "checkpoint").read_text().strip()


def test_quiet_prints_the_report_alone(
    suite: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(Controller([PASSED]), monkeypatch)
    assert call(["run", suite, "--quiet"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.startswith("GOOD: ")


@pytest.mark.parametrize("flags", [["--json"], ["--format", "json"]])
def test_json_is_alone_on_standard_output(
    flags: list[str], suite: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(Controller([PASSED]), monkeypatch)
    assert call(["run", suite, "--quiet", *flags]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["totals"]["passed"] == 1
    assert said.err.splitlines()[0].startswith("run: ")
    assert said.err.splitlines()[1].startswith("boxeval checkpoint 1 run-1 ")


@pytest.mark.contract("S1")
def test_flags_reach_the_controller(suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    controller = Controller([PASSED])
    install(controller, monkeypatch)
    key = make_key(load_settings(), "ci")
    pem = load_settings().keys_dir / "signing" / f"{key.keyid}.pem"
    flags = (
        f"--suite {suite} --target a --target b --task x --tag y --smoke --model m --jobs 3 --repeat 4 "
        f"--max-failures 5 --out {tmp_path / 'out'} --key {pem}"
    )
    assert call(["run", *flags.split()]) == 0
    assert controller.request == RunRequest(
        suite=Path(suite),
        out=tmp_path / "out",
        jobs=3,
        targets=("a", "b"),
        tasks=("x",),
        tags=("y",),
        smoke=True,
        model="m",
        repeats=4,
        max_failures=5,
        key_file=pem,
    )


@pytest.mark.contract("S1")
def test_a_suite_by_argument_and_by_name(suite: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for number, (argument, path) in enumerate([(suite, Path(suite)), ("quickstart", None)]):
        controller = Controller([PASSED])
        install(controller, monkeypatch)
        monkeypatch.setattr("boxeval.settings.resource", lambda _: tmp_path / "shipped")
        (tmp_path / "shipped").mkdir(exist_ok=True)
        (tmp_path / "shipped" / "quickstart.yaml").touch()
        assert call(["run", argument, "--out", str(tmp_path / f"out-{number}")]) == 0
        assert controller.request
        assert controller.request.suite == (path or tmp_path / "shipped" / "quickstart.yaml")


def test_a_run_signed_with_a_key_file_is_believed_at_once(
    suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = Settings(tmp_path / "elsewhere", tmp_path / "cache", None, None, True)
    pem = elsewhere.keys_dir / "signing" / f"{make_key(elsewhere, 'ci').keyid}.pem"
    install(Controller([PASSED]), monkeypatch)
    assert call(["run", suite, "--key", str(pem)]) == 0
    assert call(["report", "run-1"]) == 4


@pytest.mark.contract("S51")
def test_short_report_is_written_whatever_the_verdict(
    suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(Controller([PASSED, FAILED]), monkeypatch)
    assert call(["run", suite, "--report", str(tmp_path / "short.json")]) == 1
    document = json.loads((tmp_path / "short.json").read_text())
    assert (document["passed"], document["total"]) == (1, 2)
    assert [path.name for path in tmp_path.iterdir() if "short" in path.name] == ["short.json"]


def test_a_short_report_that_cannot_be_written_is_70(
    suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(Controller([PASSED]), monkeypatch)
    (tmp_path / "short.json").mkdir()
    assert call(["run", suite, "--report", str(tmp_path / "short.json")]) == 70
    assert "cannot be written" in capsys.readouterr().err
    assert not list(tmp_path.glob(".short*"))


def sealed_run(settings: Settings, *observed: Observations | None) -> Path:
    """A run of this home that was never closed."""
    plan = samples.plan(samples.task(), repeats=len(observed))
    seen = {f"fix-base-{n}": one for n, one in enumerate(observed, 1) if one}
    samples.write_run(settings.runs_dir / "run-1", load_signing_key(settings), plan, seen, close=False)
    return settings.runs_dir / "run-1"


@pytest.mark.contract("P19")
def test_a_run_whose_trials_all_have_verdicts_is_closed_and_then_there_is_nothing_to_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Neither the suite nor an engine is needed for it: nothing is run."""
    settings = load_settings()
    directory = sealed_run(settings, PASSED, PASSED)
    remember(settings, "run-1", RunRequest(suite=Path("gone.yaml")))
    assert call(["run", "--resume", "run-1"]) == 0
    assert "nothing to do" not in capsys.readouterr().err
    ledger = (directory / "ledger.jsonl").read_bytes()
    assert call(["run", "--resume", f"{directory}"]) == 0
    said = capsys.readouterr()
    assert f"nothing to do: every trial of {directory} has its verdict" in said.err
    assert said.out.startswith("GOOD")
    assert (directory / "ledger.jsonl").read_bytes() == ledger


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--resume", "run-1"], "it is not known here what run run-1 was started with"),
        (["--resume", "run-1", "--task", "fix"], "--resume goes on with the same selection"),
        (["--resume", "run-1", "--out", "x"], "--out does not go with --resume"),
        (["--resume", "../x", "s.yaml"], "no such directory"),
        (["--resume", "run-2"], "no run run-2"),
    ],
)
def test_what_cannot_be_resumed_is_refused_in_a_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sealed_run(load_settings(), PASSED, None)
    assert call(["run", *arguments]) in {1, 2}
    said = capsys.readouterr().err
    assert words in said
    assert len(said.splitlines()) == 1


def test_a_run_under_way_is_not_taken_up(capsys: pytest.CaptureFixture[str]) -> None:
    settings = load_settings()
    directory = sealed_run(settings, PASSED, None)
    with Recovery(directory, Trust.local(settings)):
        assert call(["run", "--resume", "run-1"]) == 2
    assert "another boxeval is running this run" in capsys.readouterr().err


@pytest.mark.contract("P19")
def test_a_resumed_run_reaches_the_controller_with_what_it_was_started_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = load_settings()
    directory = sealed_run(settings, PASSED, None)
    remember(settings, "run-1", RunRequest(suite=Path("s.yaml"), tasks=("fix",), jobs=3))
    seen: list[Any] = []

    def run_suite(request: RunRequest, *others: Any) -> RunEnd:
        seen.extend((request, others[-1].remaining))
        return RunEnd("run-1", directory, None)

    module = ModuleType("boxeval.run.controller")
    module.run_suite = run_suite  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "boxeval.run.controller", module)
    assert call(["run", "--resume", "run-1", "--jobs", "1"]) == 3
    request, remaining = seen
    assert (request.tasks, request.jobs, request.suite) == (("fix",), 1, Path("s.yaml").absolute())
    assert [trial.key for trial in remaining] == ["fix[base]#2"]


def test_a_listing_counts_trials_and_not_lines(capsys: pytest.CaptureFixture[str]) -> None:
    settings = load_settings()
    directory = sealed_run(settings, PASSED, VOID, None)
    with Recovery(directory, Trust.local(settings)) as recovery:
        ledger = recovery.go_on(load_signing_key(settings))
    ledger.append(samples.trial(samples.task(), PASSED, 2, attempt=2))
    ledger.close()
    assert call(["runs", "ls", "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert (listed["receipts"], listed["planned"], listed["state"]) == (2, 3, "closed")
