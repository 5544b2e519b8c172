"""Fixtures whose history Git writes in a box: declared commits, and files over a committed repository."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from boxeval.settings import Settings
from engine_runs import Silent, forget, run, settings_in, write_suite

GENERATED = {
    "kind": "generated",
    "commits": [
        {"message": "one", "files": {"a.txt": "1\n", "src/b.txt": "b\n"}},
        {"message": "two", "files": {"a.txt": "2\n"}},
    ],
    "files": {"a.txt": "3\n", "new.txt": "n\n"},
    "staged": ["new.txt"],
    "hooks": {"pre-commit": "#!/bin/sh\nexit 7\n"},
}
OVER = {"kind": "git", "path": "repository", "files": {"added.txt": "x\n"}, "commitFiles": True}
LOOK = r"""
test "$(git log --format=%s,%an,%at | tr '\n' ' ')" = "two,boxeval,1577836800 one,boxeval,1577836800 "
test "$(git status --porcelain | tr '\n' ' ')" = " M a.txt A  new.txt "
test "$(git symbolic-ref HEAD)" = refs/heads/main
test -z "$(git fsck --lost-found --no-reflogs 2>&1)"
test -w a.txt; test -x .git/hooks/pre-commit; echo changed > src/b.txt
if git commit -qam three; then exit 1; fi
"""
LOOK_OVER = r"""
test "$(git log --format=%s | tr '\n' ' ')" = "Add files base "
test -z "$(git status --porcelain)"; cat base.txt added.txt
"""


@pytest.fixture
def settings(tmp_path: Path, cache: Path) -> Iterator[Settings]:
    settings = settings_in(tmp_path / "bx", cache)
    yield settings
    forget(settings)


def repository(path: Path) -> None:
    path.mkdir()
    (path / "base.txt").write_text("base\n")
    env = {"PATH": os.environ["PATH"], "HOME": str(path.parent), "GIT_CONFIG_NOSYSTEM": "1"}
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for arguments in (["init", "-q", "-b", "trunk"], ["add", "."], [*who, "commit", "-qm", "base"]):
        subprocess.run(["git", *arguments], cwd=path, env=env, check=True)


@pytest.mark.contract("G57")
def test_candidates_find_what_was_declared(tmp_path: Path, settings: Settings) -> None:
    repository(tmp_path / "repository")
    tasks = "tasks:\n"
    for name, workspace, look in (("generated", GENERATED, LOOK), ("over", OVER, LOOK_OVER)):
        tasks += (
            f"  - id: {name}\n    workspace: {json.dumps(workspace)}\n"
            f"    runner: {{kind: external-command, command: {json.dumps(look)}}}\n"
            f"    verify: {{commands: ['test -d .git']}}\n"
        )
    for task in ("through", "dirty"):
        tasks += (
            f"  - id: {task}\n    workspace: {json.dumps(OVER | {'path': task, 'files': {'link/x': ''}})}\n"
            "    runner: {kind: external-command, command: 'true'}\n    verify: {commands: ['true']}\n"
        )
        repository(tmp_path / task)
    (tmp_path / "dirty/base.txt").write_text("changed\n")
    (tmp_path / "through/link").symlink_to(".")
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for arguments in (["add", "."], [*who, "commit", "-qm", "link"]):
        subprocess.run(["git", *arguments], cwd=tmp_path / "through", env=env, check=True)
    watcher = Silent()
    _, verified = run(write_suite(tmp_path, tasks), settings, watcher, jobs=2)
    found = {trial.task: trial.outcome for trial in verified.trials}
    assert found["generated"].task == found["over"].task == "passed", found
    assert (found["through"].failure_class, found["through"].detail) == (
        "setup_failed",
        "the fixture's files cannot be written: link/x: link is no directory",
    )
    assert (found["dirty"].failure_class, found["dirty"].detail) == (
        "setup_failed",
        "the repository cannot be cloned: the repository has uncommitted changes",
    )
