"""A fast check of what the built-in suites say, NOT of isolation: agent and commands run here, without a box.

For each task the real agent works against a real gateway in a temporary workspace. The verify commands must
fail on the untouched fixture and end as the task expects after the session; every assertion must hold. That
the same suites pass in boxes is for tests/engine to show.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from agent_harness import Session, run_agent

from boxeval.formats.suite_v2 import load_suite
from boxeval.sandbox.job import shell
from boxeval.settings import resource
from boxeval.spec.suite import Task
from boxeval.spec.workspace import InlineFile

SUITES = {
    name: load_suite(resource("suites") / f"{name}.yaml") for name in ("quickstart", "builtin", "general")
}
TASKS = [
    pytest.param(name, task, id=f"{name}-{task.id}")
    for name, loaded in SUITES.items()
    for task in loaded.suite.tasks
]


def place(files: Mapping[str, str | InlineFile], directory: Path) -> None:
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else content.text)


def graded(task: Task, workspace: Path, directory: Path) -> bool:
    """Whether all verify commands exit 0 in a copy of the workspace."""
    shutil.copytree(workspace, directory, symlinks=True)
    place(task.verify.files, directory)
    env = {"PATH": os.defpath, "HOME": str(directory.parent), "LANG": "C.UTF-8"}
    return all(
        subprocess.run(shell(command), cwd=directory, env=env, capture_output=True, timeout=60).returncode
        == 0
        for command in task.verify.commands
    )


def contents(directory: Path) -> dict[str, bytes]:
    """Files by relative path, without what Python caches."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def measured(session: Session, changed: set[str]) -> dict[str, object]:
    """The metrics that the suites assert, counted in this test's own way."""
    traffic = session.closed.traffic
    return {
        "tokens.measured": True,
        "tokens.input": traffic.input_tokens,
        "tokens.output": traffic.output_tokens,
        "tokens.total": traffic.input_tokens + traffic.output_tokens,
        "tools.totalCalls": traffic.tool_calls,
        "patch.filesChanged": len(changed),
        "patch.testFilesModified": len([name for name in changed if name.startswith("tests/")]),
    }


@pytest.mark.slow
@pytest.mark.contract("S50")
@pytest.mark.parametrize(("name", "task"), TASKS)
def test_a_task_ends_as_it_says(name: str, task: Task, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    place(task.workspace.files or {}, workspace)
    before = contents(workspace)
    assert task.verify.commands
    assert not graded(task, workspace, tmp_path / "untouched"), "the commands pass without any work"

    script = SUITES[name].scripts[f"task:{task.id}"]
    session = run_agent(workspace, tmp_path / "agent-home", script, task.runner.prompt or "")
    assert (session.exit_code, session.stderr) == (0, "")
    assert len(session.requests) == len(script.turns), "the script must be used up"

    after = contents(workspace)
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    passes = graded(task, workspace, tmp_path / "graded")
    assert passes == (task.expect_class != "verifier_failed")
    breaks = {path for path in changed if any(path.startswith(rule) for rule in task.verify.forbid_paths)}
    assert bool(breaks) == (task.expect_class == "forbidden_path")
    for assertion in task.verify.assertions:
        assert assertion.op == "eq"
        assert measured(session, changed)[assertion.metric] == assertion.value, assertion.metric


GOLD = {
    "create-file": "printf 'Hello, world!\\n' > hello.txt",
    "sort-lines": "sort fruits.txt > sorted.txt",
    "json-edit": "sed -i s/1.2.3/2.0.0/ package.json",
}
LIVE = load_suite(resource("suites") / "live.yaml")


@pytest.mark.contract("S50")
@pytest.mark.parametrize("task", LIVE.suite.tasks, ids=lambda task: task.id)
def test_a_task_for_a_real_model_fails_untouched_and_passes_when_it_is_done(
    task: Task, tmp_path: Path
) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    place(task.workspace.files or {}, workspace)
    assert not graded(task, workspace, tmp_path / "untouched")
    subprocess.run(shell(GOLD[task.id]), cwd=workspace, check=True)
    assert graded(task, workspace, tmp_path / "done")
    assert task.runner.script is None
    assert set(GOLD) == {one.id for one in LIVE.suite.tasks}


@pytest.mark.contract("S50")
def test_the_suites_hold_the_tasks_that_they_promise() -> None:
    ids = {name: [task.id for task in loaded.suite.tasks] for name, loaded in SUITES.items()}
    assert ids["builtin"] == [
        *("write-file", "edit-file", "bash-pipeline", "parallel-writes", "permission-denial-adapts"),
    ]
    assert ids["general"] == [
        *("research-synthesis", "csv-analysis", "writing-draft", "doc-conversion", "inventory-index"),
        "error-adapts-noncode",
    ]
    assert [task.expect_class for task in SUITES["quickstart"].suite.tasks] == [
        *(None, "verifier_failed", "forbidden_path"),
    ]
    assert not any(loaded.warnings for loaded in SUITES.values())


@pytest.mark.slow
def test_the_refusals_in_the_suites_are_real(tmp_path: Path) -> None:
    """A task that is about adapting must really have been refused first."""
    for name, task_id, said in (
        ("builtin", "permission-denial-adapts", "permission denied: ../note.txt is outside the workspace"),
        ("general", "error-adapts-noncode", "No such file or directory"),
    ):
        task = next(task for task in SUITES[name].suite.tasks if task.id == task_id)
        work = tmp_path / task_id
        work.mkdir()
        place(task.workspace.files or {}, work)
        session = run_agent(work, tmp_path / f"{task_id}-home", SUITES[name].scripts[f"task:{task_id}"])
        assert session.results[0] == f"error: {said}"
    assert not (tmp_path / "note.txt").exists()


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_names_its_schema_for_editors(name: str) -> None:
    first = (resource("suites") / f"{name}.yaml").read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=../docs/suite.schema.json"
