"""The script that writes a fixture with Git, run here in a directory instead of a box."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from boxeval.trial import history_in_box
from boxeval.trial.git_jobs import _WHO

ENV = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in _WHO.items()},
}
NOTHING: dict[str, Any] = {
    "commits": None,
    "files": None,
    "staged": [],
    "commitFiles": False,
    "hooks": {},
    "bin": {},
}


def write(place: Path, **wanted: Any) -> subprocess.CompletedProcess[str]:
    place.mkdir(exist_ok=True)
    command = [sys.executable, "-I", "-c", Path(history_in_box.__file__).read_text()]
    told = json.dumps({**NOTHING, **wanted})
    env = {**ENV, "HOME": str(place)}
    return subprocess.run(
        command, input=told, cwd=place, env=env, capture_output=True, text=True, check=False
    )


def git(place: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=place, env=ENV, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.mark.contract("G57")
def test_history_files_staging_and_hooks(tmp_path: Path) -> None:
    made = {
        "commits": [
            {"message": "one\n\nwhy", "files": {"a": "1\n", "b/c": "x", ":(top)odd": ""}},
            {"message": "two", "files": {"a": "2\n", "run": {"text": "#!/bin/sh\n", "mode": "0755"}}},
        ],
        "files": {"a": "3\n", "./new": "n", "loose": ""},
        "staged": ["./new"],
        "hooks": {"pre-commit": "exit 1\n"},
        "bin": {"greet": "#!/bin/sh\necho hello\n"},
    }
    place = tmp_path / "w"
    assert write(place, **made).returncode == 0
    assert git(place, "log", "--format=%s|%an|%ae|%at|%ct", "main").splitlines() == [
        "two|boxeval|boxeval@localhost|1577836800|1577836800",
        "one|boxeval|boxeval@localhost|1577836800|1577836800",
    ]
    assert git(place, "status", "--porcelain").splitlines() == [" M a", "A  new", "?? loose"]
    assert (
        subprocess.run([place / ".git/fixture-bin/greet"], capture_output=True, check=True).stdout
        == b"hello\n"
    )
    assert git(place, "show", "HEAD~1:a") == "1\n" and git(place, "show", "HEAD:a") == "2\n"
    assert git(place, "ls-tree", "HEAD", "run").startswith("100755 blob")
    assert git(place, "fsck", "--lost-found", "--no-reflogs") == ""
    assert not (place / ".git/logs").exists()
    assert os.access(place / ".git/hooks/pre-commit", os.X_OK)
    again = tmp_path / "again"
    write(again, **made)
    assert git(again, "rev-parse", "HEAD") == git(place, "rev-parse", "HEAD")


def test_files_as_a_commit_over_a_repository(tmp_path: Path) -> None:
    write(tmp_path, commits=[{"message": "base", "files": {"a": "1"}}])
    assert write(tmp_path, files={"b": "2"}, commitFiles=True).returncode == 0
    assert git(tmp_path, "log", "--format=%s").splitlines() == ["Add files", "base"]
    assert git(tmp_path, "status", "--porcelain") == ""


@pytest.mark.contract("G57")
@pytest.mark.parametrize("path", ["link", "link/x", "a/x", "folder"])
def test_nothing_is_written_through_a_link_or_over_what_is_no_file(tmp_path: Path, path: str) -> None:
    place = tmp_path / "w"
    write(place, commits=[{"message": "base", "files": {"a": "1", "folder/b": ""}}])
    (tmp_path / "outside").mkdir()
    (place / "link").symlink_to(tmp_path / "outside")
    done = write(place, files={path: "planted"})
    assert done.returncode == 1 and done.stderr.startswith(f"{path}: ")
    assert list((tmp_path / "outside").iterdir()) == []
