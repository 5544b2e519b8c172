"""Extensions in real boxes: the examples that are shipped, hostile ones, and one that changes meanwhile."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from boxeval.cli.app import call
from boxeval.settings import Settings, resource
from boxeval.spec.plan import PlannedTrial
from boxeval.spec.trial import Trial
from engine_runs import Silent, run, write_suite

HOSTILE = Path(__file__).with_name("hostile_extension.py")
EXAMPLES = resource("suites") / "examples" / "extensions"
TASK = """
  - id: {mode}
    workspace: {{kind: inline, files: {{a.txt: "a\\n"}}}}
    runner: {{kind: external-command, command: "echo made > made.txt"}}
    verify:
      extension: {{command: [python3, extension.py], configuration: {{mode: {mode}}}, timeoutMs: {timeout}}}
"""
ENDINGS = {
    "shut": ("completed", "passed", None, ""),
    "flood": ("error", "not_assessed", "grader_error", "104857600 bytes, more than 8388608"),
    "hang": ("error", "not_assessed", "timeout", "no answer in time"),
    "forks": ("completed", "failed", "verifier_failed", "example.hostile.check"),
    "silent": ("error", "not_assessed", "grader_error", "exited 0 without an answer"),
    "bare": ("error", "not_assessed", "grader_error", "passed without evidence"),
    "escape": ("error", "not_assessed", "grader_error", "leaves the workspace"),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("extensions")


@pytest.fixture(scope="module")
def hostile(home: Path, settings: Settings) -> dict[str, Trial]:
    """One run of every mode, by its name."""
    tasks = "".join(TASK.format(mode=mode, timeout=2000 if mode == "hang" else 120_000) for mode in ENDINGS)
    suite = write_suite(home / "hostile", f"tasks:{tasks}")
    shutil.copy(HOSTILE, suite.parent / "extension.py")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLANTED_TOKEN", "secret")
        _, verified = run(suite, settings, jobs=2)
    return {trial.task: trial for trial in verified.trials}


@pytest.mark.contract("G7", "G35", "G64", "G65", "G66")
@pytest.mark.parametrize("mode", ENDINGS)
def test_a_hostile_extension_decides_nothing(hostile: dict[str, Trial], mode: str) -> None:
    outcome = hostile[mode].outcome
    grading, verdict, failure, detail = ENDINGS[mode]
    assert (outcome.grading, outcome.task, outcome.failure_class) == (grading, verdict, failure), outcome
    assert detail in (outcome.detail or "")
    seen = hostile[mode].observations.extension
    assert seen is not None
    for exchange in seen.exchanges:
        assert exchange.box.settled
        assert exchange.box.survivors == 0


def test_what_was_bounded(hostile: dict[str, Trial]) -> None:
    boxes = {name: trial.observations.extension.exchanges[-1].box for name, trial in hostile.items()}  # type: ignore[union-attr]
    assert boxes["flood"].commands[0].stdout.truncated
    assert boxes["forks"].pids_denied > 0
    assert boxes["forks"].orphans > 0
    assert boxes["hang"].commands[0].timed_out
    assert hostile["hang"].outcome.limit == "grader"
    metric = hostile["shut"].observations.extension.metrics[0]  # type: ignore[union-attr]
    assert (metric.id, metric.value) == ("example.hostile.n", 1)


@pytest.mark.contract("G68")
def test_a_file_that_changes_during_the_run_refuses_the_assessment(tmp_path: Path, own: Settings) -> None:
    suite = write_suite(tmp_path / "suite", "tasks:" + TASK.format(mode="shut", timeout=20_000))
    place = suite.parent / "extension.py"
    shutil.copy(HOSTILE, place)

    class Changing(Silent):
        def started(self, trial: PlannedTrial, step: str) -> None:
            super().started(trial, step)
            if step == "grade":
                place.write_text(place.read_text() + "# kinder\n")

    _, verified = run(suite, own, Changing(), jobs=1)
    (trial,) = verified.trials
    assert (trial.outcome.grading, trial.outcome.failure_class) == ("error", "grader_error")
    assert "its files have changed since the run was planned" in (trial.outcome.detail or "")
    extension = trial.observations.extension
    assert extension is not None
    assert [one.method for one in extension.exchanges] == ["describe", "prepare"]
    assert extension.changed


@pytest.mark.contract("G64", "G66", "G67")
def test_the_shipped_examples_do_what_they_say(tmp_path: Path, own: Settings) -> None:
    place = shutil.copytree(EXAMPLES, tmp_path / "examples")
    _, verified = run(place / "suite.yaml", own, jobs=2)
    ended = {trial.task: trial for trial in verified.trials}
    assert {name: trial.outcome.task for name, trial in ended.items()} == {
        "words-are-there": "passed",
        "a-word-is-missing": "failed",
        "few-files": "passed",
        "its-own-verdict": "passed",
    }
    assert verified.notes == ()
    words = ended["words-are-there"].observations.extension
    assert words is not None
    assert [(check.id, check.status) for check in words.checks] == [
        ("example.words.word1", "passed"),
        ("example.words.word2", "passed"),
    ]
    # WORDS.txt is of the extension's making, and so no change of the candidate's.
    collected = ended["words-are-there"].observations.collected
    assert collected is not None
    assert [change.path for change in collected.changes] == ["README.md"]
    grader = ended["its-own-verdict"].observations.grader
    assert grader is not None
    assert grader.commands[0].exit_code == 1


def test_an_author_checks_an_extension(
    own: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BOXEVAL_HOME", str(own.data_dir.parent))
    monkeypatch.chdir(EXAMPLES)
    assert call(["extension", "check", "--json", "sh", "budget/extension.sh", "3"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["ok"]
    assert [one["method"] for one in told["methods"]] == ["describe", "resolve", "prepare", "evaluate"]
    assert "example.budget.files passed" in told["methods"][3]["detail"]
    assert call(["extension", "check", "cat"]) == 1
    assert "RED   describe" in capsys.readouterr().out
