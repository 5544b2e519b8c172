"""`boxeval check`: a suite's own solutions, and candidates that do nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from boxeval.cli.app import call
from boxeval.formats.references import has_reference, idle
from boxeval.formats.suite_v2 import load_suite
from boxeval.settings import Settings
from engine_runs import write_suite

SAYS = {"checks": [{"id": "c", "grader": "boxeval.regex", "configuration": {"pattern": "yes"}}]}
TASKS: dict[str, tuple[str, dict[str, Any], bool, bool | None]] = {
    "good": ("echo 2 > a; echo done", {"commands": ["grep -qx 2 a"]}, True, True),
    "wrong": ("echo 3 > a", {"commands": ["grep -qx 2 a"]}, False, True),
    "too-easy": ("echo 2 > a", {"commands": ["test -f a"]}, True, False),
    "says": ("echo yes", SAYS, True, True),
    "cheat": ("rm a", {"commands": ["test -f a"]}, True, None),
}
"""Command, verification, whether the solution ends as it should, whether an idle candidate does (None: not asked)."""


@pytest.mark.contract("P28")
def test_solutions_pass_and_idle_candidates_do_not(
    tmp_path: Path, own: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = [
        {
            "id": name,
            "workspace": {"kind": "inline", "files": {"a": "1\n"}},
            "runner": {"kind": "external-command", "command": command},
            "verify": verify,
            **({"expect": "failed"} if name == "cheat" else {}),
        }
        for name, (command, verify, *_) in TASKS.items()
    ]
    suite = write_suite(tmp_path / "suite", f"tasks: {json.dumps(tasks)}\n")
    monkeypatch.setenv("BOXEVAL_HOME", str(own.data_dir.parent))
    assert call(["check", "--json", str(suite)]) == 1
    told = json.loads(capsys.readouterr().out)
    assert not told["ok"]
    found = [(one["key"].partition("[")[0], one["good"]) for one in told["checks"]]
    asked = [(name, row[3]) for name, row in TASKS.items() if row[3] is not None]
    assert found == [(name, row[2]) for name, row in TASKS.items()] + asked


def test_what_has_a_solution_of_its_own(tmp_path: Path) -> None:
    script, inline = {"turns": [{"text": "x"}]}, {"kind": "inline", "files": {}}
    runners: dict[str, dict[str, Any]] = {
        "command": {"runner": {"kind": "external-command", "command": "true"}},
        "script": {"runner": {"kind": "scripted", "prompt": "p", "script": script}},
        "model": {"runner": {"kind": "scripted", "prompt": "p"}},
        "commands": {"steps": [{"id": "one", "command": "true"}]},
        "asked": {"runner": {"kind": "scripted"}, "steps": [{"id": "one", "prompt": "p"}]},
    }
    tasks = [{"id": name, "workspace": inline, **more} for name, more in runners.items()]
    tree = {
        "version": 2,
        "suite": {"id": "test", "title": "Test", "visibility": "local"},
        "matrix": {"targets": [{"id": "local", "model": "m"}]},
        "models": {"m": {"script": script}},
        "tasks": tasks,
    }
    place = tmp_path / "suite.yaml"
    place.write_text(json.dumps(tree))
    loaded = load_suite(place)
    found = {task.id for task in loaded.suite.tasks if has_reference(task)}
    assert found == {"command", "script", "commands"}
    lazy = idle(loaded).suite
    assert {(task.runner.command, task.steps) for task in lazy.tasks} == {("true", ())}
    assert [target.model for target in lazy.matrix.targets] == [None]
