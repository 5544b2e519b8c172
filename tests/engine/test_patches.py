"""Patches of real trials, applied with the real Git to a clean copy of the fixture: the trees are equal."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from shutil import copytree

import pytest

from boxeval.receipts.verify import VerifiedRun
from boxeval.reports.formats import Format, render
from boxeval.settings import Settings
from boxeval.spec.trial import Patch, Trial
from boxeval.verdicts.aggregate import aggregate
from engine_runs import loosen, run, write_suite
from patch_trees import GIT, Tree, apply, git, read

WHO = ("-c", "user.name=a", "-c", "user.email=a@b")
EVERYTHING = r"""
printf 'one\r\nZWEI\r\nthree\r\n' > crlf; printf 'a\rb\rX' > cr; printf 'no\nnewline' > tail; printf 'a\0c' > binary
head -c 3000 /dev/zero | tr '\0' '\377' > new-binary; chmod 0755 run; chmod 0600 keep; mv moved 'moved on'; rm gone
ln -sfn 'else where' link; rm to-link; ln -s keep to-link; rm d/deep; rmdir d; printf file > d; touch empty
mkdir -p 'ä/"q"'; printf 'é\n' > 'ä/"q"/ñ'; printf 'tab\n' > "$(printf 'tab\there')"; rm dir-to-be; mkdir dir-to-be
printf x > dir-to-be/x; printf x > "$(printf '\377\376')"; printf '#!/bin/sh\n' > prog; chmod 0755 prog; : > emptied
printf 'same\n' > keep
"""
WORK = "printf 'solved\\n' > a.txt; printf 'new\\n' > new.txt; rm old.txt"
HISTORY = {
    "untouched": WORK,
    "commit": f"{WORK}; git add -A; git -c user.name=x -c user.email=x@x commit -qm done",
    "amend": f"{WORK}; git add -A; git -c user.name=x -c user.email=x@x commit -q --amend -m other",
    "branch": f"git checkout -qb other; {WORK}; git add -A; git -c user.name=x -c user.email=x@x commit -qm done",
    "delete": f"rm -rf .git; {WORK}",
    "again": f"rm -rf .git; git init -q .; {WORK}; git add -A; git -c user.name=x -c user.email=x@x commit -qm all",
    "broken": f"{WORK}; printf nonsense > .git/HEAD; rm -rf .git/objects",
    "hidden": f"mkdir -p .git/info; git update-index --assume-unchanged a.txt; echo '*' > .git/info/exclude; {WORK}",
}
ATTACK = r"""
for name in core.fsmonitor core.hooksPath core.sshCommand core.pager core.editor core.alternateRefsCommand \
    diff.external diff.x.command diff.x.textconv filter.x.clean filter.x.smudge filter.x.process gpg.program \
    include.path
do git config "$name" "sh -c 'touch CANARY'" || true; done
git config core.fsmonitor 'touch CANARY; false'; git config diff.external 'touch CANARY'
git config core.hooksPath hooks; mkdir hooks; printf '#!/bin/sh\ntouch CANARY\n' > hooks/post-applypatch
cp hooks/post-applypatch hooks/pre-commit; chmod 0755 hooks/*
printf '* filter=x diff=x text eol=crlf working-tree-encoding=UTF-16\n' > .gitattributes
mkdir -p .git/info; cp .gitattributes .git/info/attributes
printf '[core]\n\tfsmonitor = touch CANARY\n' > extra; git config include.path ../extra; printf 'solved\n' > a.txt
"""


def task(name: str, workspace: str, script: str) -> str:
    return (
        f"  - id: {name}\n    workspace: {workspace}\n"
        f"    runner: {{kind: external-command, command: {json.dumps(script)}}}\n"
        '    verify: {commands: ["true"]}\n'
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("patches")
    tree = home / "tree"
    (tree / "d").mkdir(parents=True)
    contents = {
        "crlf": b"one\r\ntwo\r\nthree\r\n", "cr": b"a\rb\rc", "tail": b"no\nnewline\n", "binary": b"a\0b",
        "run": b"#!/bin/sh\n", "keep": b"same\n", "moved": b"1\n2\n3\n", "gone": b"x\n", "to-link": b"x\n",
        "d/deep": b"x\n", "dir-to-be": b"x", "emptied": b"x\n",
    }  # fmt: skip
    for name, data in contents.items():
        (tree / name).write_bytes(data)
    (tree / "link").symlink_to("keep")
    repository = home / "repo"
    (repository / "sub").mkdir(parents=True)
    for name in ("a.txt", "old.txt", "sub/inner.txt"):
        (repository / name).write_text("base\n")
    git(repository, "init", "-q")
    git(repository, "add", ".")
    git(repository, *WHO, "commit", "-qm", "base")
    nested = home / "nested"
    copytree(repository, nested / "lib")
    (nested / "a.txt").write_text("base\n")
    commit = git(repository, "rev-parse", "HEAD").decode().strip()
    git_workspace = f"{{kind: git, path: repo, commit: {commit}}}"
    tasks = [task("everything", "{kind: temp-copy, path: tree}", EVERYTHING)]
    tasks += [task(name, git_workspace, script) for name, script in HISTORY.items()]
    tasks += [
        task("attack", git_workspace, ATTACK.replace("CANARY", str(home / "canary"))),
        task("nested", "{kind: temp-copy, path: nested}", "echo work > lib/a.txt"),
        task("special", "{kind: temp-copy, path: tree}", "mkfifo pipe; echo work > keep"),
        task("nothing", "{kind: temp-copy, path: tree}", "touch keep"),
        task(
            "large",
            "{kind: temp-copy, path: tree}",
            "head -c 7000000 /dev/urandom > a; for f in e g h; do cat a > $f; done",
        ),
    ]
    write_suite(home, "tasks:\n" + "".join(tasks))
    loosen(home, {"bytes: 4000000": "bytes: 40000000", "Mib: 16": "Mib: 64", "Mib: 128": "Mib: 256"})
    return home


@pytest.fixture(scope="module")
def finished(home: Path, settings: Settings) -> VerifiedRun:
    return run(home / "suite.yaml", settings, jobs=2)[1]


def patch_of(finished: VerifiedRun, name: str) -> tuple[Patch, bytes]:
    trial = next(trial for trial in finished.trials if trial.task == name)
    assert trial.outcome.task == "passed", (trial.outcome, said(finished, trial))
    collected = trial.observations.collected
    assert collected and collected.patch
    patch = collected.patch
    assert trial.metrics["patch.bytes"] == (patch.size_bytes if patch.sha256 else None)
    return patch, finished.blobs.get(patch.sha256) if patch.sha256 else b""


def said(finished: VerifiedRun, trial: Trial) -> bytes:
    agent = trial.observations.agent
    kept = agent.commands[-1].stderr.kept if agent and agent.commands else None
    return finished.blobs.get(kept) if kept else b""


def applied(fixture: Path, patch: bytes, place: Path) -> Tree:
    copytree(fixture, place, symlinks=True)
    apply(place, patch)
    return read(place)


@pytest.mark.contract("S24", "S33")
def test_every_kind_of_change_applies_and_gives_the_same_tree(
    finished: VerifiedRun, home: Path, tmp_path: Path
) -> None:
    """E7. The tree that is wanted comes from the same script, run over a copy."""
    patch, data = patch_of(finished, "everything")
    wanted = tmp_path / "wanted"
    copytree(home / "tree", wanted, symlinks=True)
    subprocess.run(["sh", "-ec", EVERYTHING], cwd=wanted, env=GIT, check=True)
    assert applied(home / "tree", data, tmp_path / "applied") == read(wanted)
    assert (patch.complete, patch.reasons) == (True, ())


@pytest.mark.parametrize("name", HISTORY)
@pytest.mark.contract("S24", "S33")
def test_whatever_became_of_the_history_the_patch_is_of_the_work_tree(
    name: str, finished: VerifiedRun, home: Path, tmp_path: Path
) -> None:
    """E6."""
    patch, data = patch_of(finished, name)
    assert data == patch_of(finished, "untouched")[1]
    assert patch.complete
    assert bool(patch.reasons) == (name != "untouched")
    git(tmp_path, "clone", "-q", str(home / "repo"), "clean")
    apply(tmp_path / "clean", data, "--index")
    assert (tmp_path / "clean" / "a.txt").read_text() == "solved\n"
    assert (tmp_path / "clean" / "new.txt").read_text() == "new\n"
    assert not (tmp_path / "clean" / "old.txt").exists()
    trial = next(trial for trial in finished.trials if trial.task == name)
    assert trial.metrics["patch.filesChanged"] == 3


@pytest.mark.contract("S33")
def test_no_configuration_of_a_repository_reaches_the_host(
    finished: VerifiedRun, home: Path, tmp_path: Path
) -> None:
    """E1."""
    exported = render(Format.SWE_JSONL, aggregate(finished), finished)
    lines = {line["instance_id"]: line for line in map(json.loads, exported.splitlines())}
    assert "+solved\n" in lines["attack"]["model_patch"]
    assert "filter=x" in lines["attack"]["model_patch"]
    assert not (home / "canary").exists()
    assert {name: line["pass"] for name, line in lines.items()} == dict.fromkeys(lines, True)
    tree = applied(home / "repo", lines["attack"]["model_patch"].encode(), tmp_path / "applied")
    assert tree[b"a.txt"].data == b"solved\n"


@pytest.mark.contract("S33")
def test_a_nested_repository_is_in_the_patch_and_flagged(
    finished: VerifiedRun, home: Path, tmp_path: Path
) -> None:
    """E4."""
    patch, data = patch_of(finished, "nested")
    assert not patch.complete
    assert patch.reasons == ("a nested repository changed; of it the patch has the files alone: lib",)
    assert applied(home / "nested", data, tmp_path / "applied")[b"lib/a.txt"].data == b"work\n"


@pytest.mark.contract("S33")
def test_what_no_patch_can_hold_is_told(finished: VerifiedRun) -> None:
    patch, data = patch_of(finished, "special")
    assert (patch.complete, patch.reasons) == (False, ("neither a file nor a link: pipe",))
    assert b"+work\n" in data


@pytest.mark.contract("S33")
def test_an_empty_patch_means_that_nothing_changed(finished: VerifiedRun) -> None:
    patch, data = patch_of(finished, "nothing")
    assert (patch.complete, patch.size_bytes, data) == (True, 0, b"")
    assert patch.sha256


def test_what_was_there_before_is_in_the_receipt(finished: VerifiedRun) -> None:
    trial = next(trial for trial in finished.trials if trial.task == "everything")
    assert trial.observations.collected
    changes = {change.path: change for change in trial.observations.collected.changes}
    assert (changes["link"].was_link, changes["link"].link) == ("keep", "else where")
    assert (changes["run"].was_mode, changes["run"].mode) == (0o644, 0o755)
    assert changes["run"].was_sha256 == changes["run"].sha256
    assert (changes["gone"].was_size_bytes, changes["gone"].kind) == (2, None)


@pytest.mark.contract("S33")
def test_a_patch_past_its_cap_is_no_patch(finished: VerifiedRun) -> None:
    patch, _ = patch_of(finished, "large")
    assert (patch.sha256, patch.complete) == (None, False)
    assert patch.reasons == ("the patch, or what it is made of, is too large, at: h",)
