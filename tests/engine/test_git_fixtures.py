"""A git fixture holds its commit, perhaps the ancestors, and nothing in which an answer could hide (A11)."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from boxeval.errors import UsageError
from boxeval.receipts.verify import VerifiedRun
from boxeval.sandbox.box import create_container, remove_container
from boxeval.sandbox.engine import Engine
from boxeval.sandbox.images import ImageInfo
from boxeval.sandbox.settings import BoxMounts, engine_differences
from boxeval.sandbox.slot import Slot
from boxeval.settings import Settings
from boxeval.spec.trial import Trial
from engine_fixtures import MakeBox
from engine_runs import run, write_suite

ENV = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_NAME": "a" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "a@b" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_DATE": "2021-01-01T00:00:00Z" for who in ("AUTHOR", "COMMITTER")},
}
LOOK = r"""
git log --all --format=%s; echo "refs: $(git for-each-ref --format='%(refname)' | tr '\n' ' ')"
git reflog; git stash list; git notes list; git replace -l; git remote -v; git fsck --lost-found --no-reflogs 2>&1
git worktree list | wc -l; git status --porcelain; cat a.txt
echo "objects: $(git cat-file --batch-all-objects --batch | grep -c 'ANSWER')"
echo "ancestors: $(git cat-file --batch-all-objects --batch | grep -c 'ANCESTOR')"
grep -rl ANSWER . | sort; find .git -name 'packed-refs' -o -name '*HEAD' -o -name shallow -o -name logs | sort
"""
FULL = """\
base
before
refs: refs/heads/main\x20
1
base
objects: 0
ancestors: 1
.git/HEAD
"""
ALONE = """\
base
refs: refs/heads/main\x20
1
base
objects: 0
ancestors: 0
.git/HEAD
"""
READY = """
import socket, time
for _ in range(100):
    try:
        socket.create_connection(("127.0.0.1", 8000))
        break
    except OSError:
        time.sleep(0.05)
else:
    raise SystemExit(1)
"""
LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:0000\nsize 4\n"


def git(repository: Path, *arguments: str) -> str:
    command = ["git", "-c", "protocol.file.allow=always", *arguments]
    done = subprocess.run(command, cwd=repository, env=ENV, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(repository: Path, text: str, message: str) -> str:
    (repository / "a.txt").write_text(text)
    git(repository, "add", ".")
    git(repository, "commit", "-qm", message)
    return git(repository, "rev-parse", "HEAD")


def repository_with_answers(path: Path) -> str:
    """Every place in which Git may keep another commit has one, and all of them say ANSWER."""
    path.mkdir()
    git(path, "init", "-q", "-b", "trunk")
    commit(path, "ANCESTOR\n", "before")
    base = commit(path, "base\n", "base")
    git(path, "tag", "-am", "ANSWER in the message", "release")
    later = commit(path, "ANSWER\n", "ANSWER later")
    git(path, "tag", "ANSWER")
    git(path, "notes", "add", "-m", "ANSWER in a note", base)
    git(path, "checkout", "-qb", "fix", base)
    commit(path, "ANSWER on a branch\n", "ANSWER on a branch")
    git(path, "reset", "-q", "--hard", base)
    (path / "a.txt").write_text("ANSWER in a stash\n")
    git(path, "stash", "-q")
    git(path, "branch", "replacement", later)
    git(path, "replace", base, later)
    git(path, "worktree", "add", "-q", "../worktree-of-" + path.name, "replacement")
    git(path, "update-ref", "refs/remotes/origin/ANSWER", later)
    git(path, "--no-replace-objects", "checkout", "-q", "--detach", base)
    git(path, "replace", "-d", base)
    git(path, "--no-replace-objects", "replace", base, later)
    git(path, "--no-replace-objects", "reset", "-q", "--hard", base)
    return base


def task(name: str, workspace: dict[str, str], command: str = LOOK) -> str:
    return (
        f"  - id: {name}\n    workspace: {json.dumps({'kind': 'git', **workspace})}\n"
        f"    runner: {{kind: external-command, command: {json.dumps(command)}}}\n"
        '    verify: {commands: ["true"]}\n'
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("git")
    base = repository_with_answers(home / "loose")
    assert repository_with_answers(home / "packed") == base
    git(home / "packed", "gc", "-q", "--prune=now")
    git(home, "clone", "-q", "--mirror", "loose", "bare")
    git(home / "bare", "update-server-info")
    git(home, "clone", "-q", "--depth", "1", f"file://{home}/loose", "shallow")
    git(home, "clone", "-q", str(home / "packed"), "sub-source")
    git(home / "sub-source", "submodule", "add", "-q", str(home / "loose"), "vendor/ä")
    (home / "sub-source" / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
    (home / "sub-source" / "large.bin").write_text(LFS)
    parts = commit(home / "sub-source", "base\n", "parts")
    (home / "sub-source" / "large.bin").write_text("what it points to")
    write_suite(
        home,
        "tasks:\n"
        + task("loose", {"path": "loose", "commit": base})
        + task("packed", {"path": "packed", "commit": base})
        + task("bare", {"path": "bare", "commit": base})
        + task("by-tag", {"path": "loose", "checkout": "release"})
        + task("full", {"path": "loose", "commit": base, "history": "full"})
        + task("alone", {"path": "loose", "commit": base, "history": "none"})
        + task("alone-packed", {"path": "packed", "checkout": "release", "history": "none"})
        + task("shallow", {"path": "shallow", "checkout": "HEAD"}, "git log --format=%s; git fsck; cat a.txt")
        + task(
            "alone-shallow",
            {"path": "shallow", "history": "none"},
            "git log --format=%s; git fsck; cat a.txt",
        )
        + task("by-file-url", {"url": "file:///srv/bare", "commit": base})
        + task(
            "parts",
            {"path": "sub-source", "commit": parts},
            "ls -A vendor/ä; cat large.bin; echo x > vendor/ä/new",
        ),
    )
    policy = home / "small.yaml"
    policy.write_text(policy.read_text() + f"mounts: [{{source: {home}/bare, target: /srv/bare}}]\n")
    return home


@pytest.fixture(scope="module")
def finished(home: Path, settings: Settings) -> VerifiedRun:
    return run(home / "suite.yaml", settings, jobs=2)[1]


def said(finished: VerifiedRun, name: str) -> tuple[Trial, str]:
    trial = next(trial for trial in finished.trials if trial.task == name)
    assert trial.outcome.task == "passed", trial.outcome
    agent = trial.observations.agent
    kept = agent.commands[0].stdout.kept if agent else None
    return trial, finished.blobs.get(kept).decode() if kept else ""


@pytest.mark.parametrize("name", ["loose", "packed", "bare", "by-tag", "full", "by-file-url"])
@pytest.mark.contract("P20", "S10")
def test_the_commit_with_its_ancestors_and_nothing_else(name: str, finished: VerifiedRun) -> None:
    assert said(finished, name)[1] == FULL


@pytest.mark.parametrize("name", ["alone", "alone-packed"])
@pytest.mark.contract("P20", "S10")
def test_without_history_there_is_one_root_commit(name: str, finished: VerifiedRun) -> None:
    assert said(finished, name)[1] == ALONE


@pytest.mark.contract("S10")
def test_the_same_tree_is_the_same_fixture_however_it_came(finished: VerifiedRun) -> None:
    digests = {said(finished, name)[0].observations.fixture for name in ("alone", "alone-packed")}
    assert len(digests) == 1


@pytest.mark.parametrize(("name", "subject"), [("shallow", "base"), ("alone-shallow", "base")])
def test_a_shallow_source_is_as_long_as_it_is(name: str, subject: str, finished: VerifiedRun) -> None:
    assert said(finished, name)[1] == f"{subject}\nbase\n"


@pytest.mark.contract("S33")
def test_submodules_and_large_files_are_left_out_and_that_is_said(finished: VerifiedRun) -> None:
    """E4 as well: what was written into the submodule's directory is in the patch, and flagged."""
    trial, text = said(finished, "parts")
    assert text == LFS
    notes = trial.observations.fixture_notes
    assert notes and (notes.submodules, notes.lfs_pointers) == (("vendor/ä",), ("large.bin",))
    patch = trial.observations.collected and trial.observations.collected.patch
    assert patch and patch.sha256
    assert patch.reasons == ("a nested repository changed; of it the patch has the files alone: vendor/ä",)
    assert not patch.complete
    assert b"vendor/\\303\\244/new" in finished.blobs.get(patch.sha256)
    assert said(finished, "loose")[0].observations.fixture_notes is None


@pytest.fixture(scope="module")
def server(engine: Engine, grader_image: ImageInfo, home: Path) -> Iterator[str]:
    """A repository served as plain files over http, in a container on the engine's default network."""
    config = {
        "Image": grader_image.image_id,
        "Entrypoint": ["python3", "-m", "http.server", "8000", "--directory", "/srv"],
        "HostConfig": {"NetworkMode": "bridge", "Binds": [f"{home}/bare:/srv/bare:ro"]},
    }
    container = create_container(engine, config, f"boxeval-test-server-{secrets.token_hex(4)}")
    try:
        engine.api.start(container)
        address = engine.api.inspect_container(container)["NetworkSettings"]["Networks"]["bridge"][
            "IPAddress"
        ]
        command = engine.api.exec_create(container, ["python3", "-c", READY])["Id"]
        engine.api.exec_start(command)
        assert engine.api.exec_inspect(command)["ExitCode"] == 0
        yield f"http://{address}:8000/bare"
    finally:
        remove_container(engine, container)


@pytest.mark.contract("P20", "S10")
def test_a_repository_behind_http_is_fetched_with_leave_and_the_candidate_has_no_network(
    server: str, home: Path, settings: Settings, tmp_path: Path
) -> None:
    base = git(home / "loose", "--no-replace-objects", "rev-parse", "release^{commit}")
    suite = write_suite(
        tmp_path,
        "tasks:\n"
        + task("fetched", {"url": server, "commit": base}, f"{LOOK}\nls /sys/class/net >&2")
        + task("none", {"url": server, "commit": base, "history": "none"}),
    )
    with pytest.raises(
        UsageError, match=r"task fetched: http://.*must be fetched over a network.*--allow-network"
    ):
        run(suite, settings)
    _, verified = run(suite, settings, allow_network=True)
    assert verified.plan.allow_network
    trial, text = said(verified, "fetched")
    assert text == FULL
    agent = trial.observations.agent
    assert agent and agent.commands[0].stderr.kept
    assert verified.blobs.get(agent.commands[0].stderr.kept) == b"lo\n"
    assert said(verified, "none")[1] == ALONE


def test_the_network_of_a_fetch_box_is_read_back(slot: Slot, make_box: MakeBox, engine: Engine) -> None:
    box = make_box(bridge=True)
    box.start()
    inspected = engine.api.inspect_container(box.id)
    assert inspected["HostConfig"]["NetworkMode"] == "bridge"
    closed = BoxMounts(inspected["Mounts"][0]["Name"], slot.yard.tools_volume, slot.keeper_id)
    found = engine_differences(slot.policy, closed, inspected)
    assert any(line.startswith("NetworkMode: asked for 'container:") for line in found)
    box.settle()
