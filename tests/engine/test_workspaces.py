"""All five kinds of workspace end as the same thing in the box: the files, owned by the candidate, over a snapshot."""

from __future__ import annotations

import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from boxeval.settings import Settings
from boxeval.spec.trial import Trial
from engine_runs import run, write_suite

GIT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
    "GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z",
}
SUITE = r"""
tasks:
  - id: inline
    workspace: {kind: inline, files: {a.txt: "one\n", "d/run.sh": {text: "echo ran\n", mode: "0755"}}}
    runner: &r {kind: external-command, command: "ls -lnR . ; cat a.txt; ./d/run.sh; echo two > a.txt"}
    verify: {commands: ["grep -qx two a.txt"]}
  - id: temp-copy
    workspace: {kind: temp-copy, path: tree, excludes: ["*.log"]}
    runner: {kind: external-command, command: "test ! -e noise.log; ls -lnR .; cat a.txt; ./d/run.sh; echo two > a.txt"}
    verify: {commands: ["grep -qx two a.txt"]}
  - id: local
    workspace: {kind: local, path: tree, excludes: ["*.log"]}
    runner: {kind: external-command, command: "ls -lnR . ; cat a.txt; ./d/run.sh; echo two > a.txt"}
    verify: {commands: ["grep -qx two a.txt"]}
  - id: archive
    workspace: {kind: archive, path: tree.tar.gz}
    runner: {kind: external-command, command: "ls -lnR . ; cat a.txt; ./d/run.sh; echo two > a.txt"}
    verify: {commands: ["grep -qx two a.txt"]}
  - id: git
    workspace: {kind: git, path: repo, commit: COMMIT}
    runner: {kind: external-command, command: "ls -lnR d a.txt; cat a.txt; ./d/run.sh; echo two > a.txt"}
    verify: {commands: ["grep -qx two a.txt", "test $(git rev-parse HEAD) = COMMIT"]}
  - id: git-answers
    workspace: {kind: git, path: repo, commit: COMMIT}
    runner:
      kind: external-command
      commands:
        - git log --all --format=%s; git tag; git stash list; git reflog; git remote; git fsck --lost-found; git branch
    verify: {commands: ["true"]}
  - id: set-up
    workspace:
      kind: inline
      files: {a.txt: "one\n", gone: ""}
      setup: ["rm gone; mkdir made; echo set > made/up", "chmod 0700 made"]
    runner: {kind: external-command, command: "test ! -e gone; cat made/up; ls -ld made"}
    verify: {commands: ["test -e made/up"], assertions: [{metric: patch.filesChanged, op: eq, value: 0}]}
"""


def git(repository: Path, *arguments: str) -> str:
    command = ["git", "-c", "init.defaultBranch=trunk", *arguments]
    return subprocess.run(
        command, cwd=repository, env=GIT, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("workspaces")
    tree = home / "tree"
    (tree / "d").mkdir(parents=True)
    (tree / "a.txt").write_text("one\n")
    (tree / "noise.log").write_text("noise\n")
    (tree / "d" / "run.sh").write_text("echo ran\n")
    (tree / "d" / "run.sh").chmod(0o755)
    with tarfile.open(home / "tree.tar.gz", "w:gz") as archive:
        archive.add(tree / "a.txt", "a.txt")
        archive.add(tree / "d", "d")
    repository = home / "repo"
    repository.mkdir()
    git(repository, "init", "-q")
    (repository / "a.txt").write_text("one\n")
    (repository / "d").mkdir()
    (repository / "d" / "run.sh").write_text("echo ran\n")
    (repository / "d" / "run.sh").chmod(0o755)
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "base")
    commit = git(repository, "rev-parse", "HEAD")
    (repository / "a.txt").write_text("the answer\n")
    git(repository, "commit", "-qam", "FUTURE fix")
    git(repository, "tag", "FUTURE-tag")
    (repository / "a.txt").write_text("stashed\n")
    git(repository, "stash", "-q")
    (repository / ".git" / "hooks" / "post-checkout").write_text(f"#!/bin/sh\ntouch {home}/canary\n")
    (repository / ".git" / "hooks" / "post-checkout").chmod(0o755)
    git(repository, "config", "core.fsmonitor", f"touch {home}/canary; false")
    write_suite(home, SUITE.replace("COMMIT", commit).replace("&r ", ""))
    return home


@pytest.fixture(scope="module")
def finished(home: Path, settings: Settings) -> dict[str, tuple[Trial, str]]:
    end, verified = run(home / "suite.yaml", settings, jobs=2)
    said: dict[str, tuple[Trial, str]] = {}
    for trial in verified.trials:
        agent = trial.observations.agent
        kept = agent.commands[0].stdout.kept if agent else None
        text = (end.directory / "blobs" / kept[:2] / kept).read_text() if kept else ""
        said[trial.task] = (trial, text)
    return said


@pytest.mark.parametrize("kind", ["inline", "temp-copy", "local", "archive", "git"])
@pytest.mark.contract("S10")
def test_every_kind_gives_the_same_files(kind: str, finished: dict[str, tuple[Trial, str]]) -> None:
    trial, said = finished[kind]
    assert trial.outcome.task == "passed", trial.outcome
    assert "one\nran\n" in said
    assert "-rwxr-xr-x 1 10001 10001" in said
    assert trial.metrics["patch.filesChanged"] == 1


@pytest.mark.contract("P20")
def test_a_git_fixture_holds_no_other_commit(finished: dict[str, tuple[Trial, str]], home: Path) -> None:
    trial, said = finished["git-answers"]
    assert trial.outcome.task == "passed", trial.outcome
    assert said == "base\n* main\n"
    assert not (home / "canary").exists()


@pytest.mark.contract("S10")
def test_set_up_is_part_of_the_fixture_and_not_of_the_patch(finished: dict[str, tuple[Trial, str]]) -> None:
    trial, said = finished["set-up"]
    assert trial.outcome.task == "passed", trial.outcome
    assert said.startswith("set\ndrwx------")


@pytest.mark.usefixtures("finished")
def test_the_source_directories_are_untouched(home: Path) -> None:
    assert (home / "tree" / "a.txt").read_text() == "one\n"
    assert git(home / "repo", "-c", "core.fsmonitor=false", "status", "--porcelain") == ""


def test_a_fixture_is_the_same_tree_by_any_kind(finished: dict[str, tuple[Trial, str]]) -> None:
    digests = {finished[kind][0].observations.fixture for kind in ("inline", "temp-copy", "local", "archive")}
    assert len(digests) == 1


def test_a_dirty_repository_is_refused(settings: Settings, tmp_path: Path) -> None:
    repository = tmp_path / "repo"
    repository.mkdir()
    git(repository, "init", "-q")
    (repository / "a").write_text("a\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "base")
    (repository / "a").write_text("dirty\n")
    suite = write_suite(
        tmp_path,
        """
        tasks:
          - id: dirty
            workspace: {kind: git, path: repo, checkout: trunk}
            runner: {kind: external-command, command: "true"}
            verify: {commands: ["true"]}
        """.replace("\n        ", "\n"),
    )
    _, verified = run(suite, settings)
    outcome = verified.trials[0].outcome
    assert (outcome.failure_class, outcome.weight) == ("setup_failed", "void")
    assert "uncommitted changes" in (outcome.detail or "")


@pytest.mark.contract("S10")
def test_only_a_passed_trial_of_kind_local_is_written_back_and_only_when_asked(
    settings: Settings, tmp_path: Path
) -> None:
    for name in ("asked", "not-asked", "failed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text("one\n")
    task = """
  - id: {0}
    workspace: {{kind: local, path: {0}{1}}}
    runner: {{kind: external-command, command: "echo two > a.txt; mkdir made; echo new > made/file"}}
    verify: {{commands: ["{2}"]}}
"""
    text = (
        "\ntasks:" + task.format("asked", ", writeBack: true", "true") + task.format("not-asked", "", "true")
    )
    suite = write_suite(tmp_path, text + task.format("failed", ", writeBack: true", "exit 1"))
    run(suite, settings)
    assert (tmp_path / "asked" / "a.txt").read_text() == "two\n"
    assert (tmp_path / "asked" / "made" / "file").read_text() == "new\n"
    for name in ("not-asked", "failed"):
        assert [place.name for place in (tmp_path / name).iterdir()] == ["a.txt"]
        assert (tmp_path / name / "a.txt").read_text() == "one\n"
