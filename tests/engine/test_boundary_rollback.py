"""Every kind of change, inside and outside `writes`: what stays, what comes back, byte for byte as the grader sees it."""

# ruff: noqa: E501  tables of one case a line
from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from boxeval.settings import Settings
from boxeval.spec.trial import Trial
from engine_runs import HEAD, forget, run, settings_in, write_suite

MANIFEST = r"""python3 -I - <<'E'
import json, os, stat
def tell(path):
    info = os.lstat(path)
    mode = f"{stat.S_IMODE(info.st_mode):04o}"
    if stat.S_ISLNK(info.st_mode): return ["link", os.readlink(path)]
    more = [os.listxattr(path)] if os.listxattr(path) else []
    if stat.S_ISDIR(info.st_mode): return ["dir", mode, *more]
    if stat.S_ISREG(info.st_mode): return ["file", mode, open(path).read(), *more]
    return ["special"]
found = {}
assert not os.listxattr("."), os.listxattr(".")
for folder, below, files in os.walk("."):
    for name in below + files:
        path = os.path.join(folder, name)
        found[path[2:]] = tell(path)
print(json.dumps(found))
E
"""


def text(content: str, mode: str = "0644") -> list[str]:
    return ["file", mode, content]


DIR = ["dir", "0755"]
FIXTURE: dict[str, Any] = {
    ".git": DIR,
    ".git/config": text("[core]\n"),
    "d": DIR,
    "d/deep": text("deep\n"),
    "d/other": text("other\n"),
    "d/sub": DIR,
    "d/sub/x": text("x\n"),
    "d/sub/y": text("y\n"),
    "e": DIR,
    "f": text("first\n"),
    "link": ["link", "f"],
    "run": text("run\n", "0755"),
    "w": DIR,
    "w/a": text("a\n"),
}
D_DELETED = dict.fromkeys(("d", "d/deep", "d/other", "d/sub", "d/sub/x", "d/sub/y"), "deleted")
D_GONE = dict.fromkeys(D_DELETED)


def without(found: dict[str, Any], *paths: str) -> dict[str, Any]:
    return {path: value for path, value in found.items() if path not in paths}


MOVED = {path.replace("d", "w/d", 1): FIXTURE[path] for path in D_DELETED}
SOCKET = "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('w/s')\""

ATTRIBUTES = r"""python3 - <<'E'
import os, struct
nobody = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", tag, 0, 0xffffffff) for tag in (1, 4, 32))
for path in (".", "d", "d/deep", "w", "w/a"):
    os.setxattr(path, "user.note", b"x")
    if os.path.isdir(path): os.setxattr(path, "system.posix_acl_default", nobody)
    assert os.listxattr(path)
E
"""
"""A default access list decides what a grader may do with the files that it makes."""

# script, writes, how the graded tree differs from the fixture (None: gone), violations
CASES: dict[str, tuple[str, list[str], dict[str, Any], dict[str, str]]] = {
    "nothing": ("true", [], {}, {}),
    "copied up and the same": ("touch f d; cat f > f.new; mv f.new f", [], {}, {}),
    "attributes and access lists": (ATTRIBUTES, ["w/"], {}, {}),
    "created": ("touch new; echo n > w/n", ["w/"], {"w/n": text("n\n")}, {"new": "created"}),
    "created tree": ("mkdir -p a/b; touch a/b/c", ["w/"], {}, {"a": "created", "a/b": "created", "a/b/c": "created"}),
    "created on the way": ("mkdir out; echo r > out/r; echo s > out/s", ["out/r"], {"out": DIR, "out/r": text("r\n")}, {"out/s": "created"}),
    "created empty directory": ("mkdir n", ["w/"], {}, {"n": "created"}),
    "changed": ("echo 2 > f; echo 2 > w/a", ["w/"], {"w/a": text("2\n")}, {"f": "changed"}),
    "changed exact file": ("echo 2 > f", ["./f"], {"f": text("2\n")}, {}),
    "same size": ("printf 'secnd\\n' > f", [], {}, {"f": "changed"}),
    "deleted": ("rm f", [], {}, {"f": "deleted"}),
    "deleted and allowed": ("rm f", ["f"], {"f": None}, {}),
    "deleted tree": ("rm -r d", ["w/"], {}, D_DELETED),
    "deleted tree and allowed": ("rm -r d", ["d/"], D_GONE, {}),
    "deleted tree, one file allowed": ("rm -r d", ["d/other"], {"d/other": None}, without(D_DELETED, "d/other")),
    "deleted tree, a subtree allowed": ("rm -r d", ["d/sub/"], dict.fromkeys(("d/sub", "d/sub/x", "d/sub/y")), without(D_DELETED, "d/sub", "d/sub/x", "d/sub/y")),
    "deleted tree, a deep file allowed": ("rm -r d", ["d/sub/y"], {"d/sub/y": None}, without(D_DELETED, "d/sub/y")),
    "mode of a file": ("chmod 0600 f; chmod 0600 w/a", ["w/"], {"w/a": text("a\n", "0600")}, {"f": "mode"}),
    "mode of a directory": ("chmod 0700 d", ["w/"], {}, {"d": "mode"}),
    "mode of all": ("chmod 0 d/deep d/sub; chmod 0 d", [], {}, {"d": "mode", "d/deep": "mode", "d/sub": "mode"}),
    "mode of a directory on the way": ("chmod 0700 d; echo 2 > d/deep", ["d/deep"], {"d/deep": text("2\n")}, {"d": "mode"}),
    "mode of the workspace": ("chmod 0777 .", [], {}, {}),
    "link": ("rm link; ln -s d link", [], {}, {"link": "link"}),
    "link out, inside a subtree": ("ln -s /etc/passwd w/p", ["w/"], {"w/p": ["link", "/etc/passwd"]}, {}),
    "link in place of a file": ("rm f; ln -s /etc/passwd f", ["f"], {}, {"f": "kind"}),
    "link in place of a subtree": ("rm -r w; ln -s d w; echo 2 > w/deep", ["w/"], {"w/a": None}, {"w": "kind", "d/deep": "changed"}),
    "fifo in place of a file": ("rm f; mkfifo f", ["f"], {}, {"f": "kind"}),
    "fifo and socket in a subtree": (f"mkfifo w/p; {SOCKET}", ["w/"], {}, {"w/p": "created", "w/s": "created"}),
    "directory in place of a file": ("rm f; mkdir f; touch f/x", ["f"], {}, {"f": "kind", "f/x": "created"}),
    "file in place of a directory": ("rm -r d; echo x > d", ["w/"], {}, {**D_DELETED, "d": "kind"}),
    "file in place of a directory, one file allowed": ("rm -r d; echo x > d", ["d/other"], {"d/other": None}, {**without(D_DELETED, "d/other"), "d": "kind"}),
    "renamed directory": ("mv d moved", ["w/"], {}, {**D_DELETED, **{path.replace("d", "moved", 1): "created" for path in D_DELETED}}),
    "renamed into the subtree": ("mv d w/d", ["w/"], MOVED, D_DELETED),
    "renamed out of the subtree": ("mv w d/w", ["w/"], {"w": None, "w/a": None}, {"d/w": "created", "d/w/a": "created"}),
    "opaque": ("rm -r d; mkdir d; printf 'deep\\n' > d/deep", [], {}, without(D_DELETED, "d", "d/deep")),
    "opaque and allowed": ("rm -r d; mkdir d; echo 2 > d/deep", ["d/"], {**without(D_GONE, "d"), "d/deep": text("2\n")}, {}),
    "opaque, a new file allowed": ("rm -r d; mkdir d; echo n > d/new", ["d/new"], {"d/new": text("n\n")}, without(D_DELETED, "d")),
    "opaque, a subtree allowed": ("rm -r d; mkdir -p d/sub; echo n > d/sub/x", ["d/sub/"], {"d/sub/x": text("n\n"), "d/sub/y": None}, {"d/deep": "deleted", "d/other": "deleted"}),
    "opaque, a deep file allowed": ("rm -r d; mkdir -p d/sub; echo n > d/sub/x", ["d/sub/x"], {"d/sub/x": text("n\n")}, {"d/deep": "deleted", "d/other": "deleted", "d/sub/y": "deleted"}),
    "opaque, deletions allowed": ("rm -r d; mkdir d; echo n > d/deep", ["d/other", "d/sub/"], {"d/other": None, "d/sub": None, "d/sub/x": None, "d/sub/y": None}, {"d/deep": "changed"}),
    "opaque with a new file": ("rm -r d; mkdir d; echo n > d/n; echo 2 > d/deep", ["d/deep", "d/other", "d/sub/"], {**without(D_GONE, "d"), "d/deep": text("2\n")}, {"d/n": "created"}),
    "hard link from a protected file": ("ln d/deep w/alias; echo more >> w/alias", ["w/"], {"w/alias": text("deep\nmore\n")}, {"d/deep": "changed"}),
    "hard link to a protected name": ("rm d/deep; ln w/a d/deep; echo more >> d/deep", ["w/"], {"w/a": text("a\nmore\n")}, {"d/deep": "changed"}),
    "git is not in the whole": ("echo evil >> .git/config; touch n", ["./"], {"n": text("")}, {".git/config": "changed"}),
    "git is not in a subtree": ("mkdir w/.git; echo evil > w/.git/config", ["w/"], {}, {"w/.git": "created", "w/.git/config": "created"}),
    "git by name": ("echo ok >> .git/config", [".git/"], {".git/config": text("[core]\nok\n")}, {}),
    "strange names": ("touch -- -rf 'a b' \"$(printf 'x\\ny\\033')\" \"$(printf '\\377')\" 'back\\slash'", ["w/"], {}, {"-rf": "created", "a b": "created", "x\ny\x1b": "created", "\\xff": "created", "back\\\\slash": "created"}),
    "full disk": ("rm -r d; mkdir d; head -c 7000000 /dev/zero > w/1; cp w/1 w/2; cp w/1 w/3 || rm w/[12]; echo n > w/3", ["w/"], {"w/3": text("n\n")}, without(D_DELETED, "d")),
}  # fmt: skip


def plant(root: Path) -> None:
    root.mkdir()
    for path, (kind, *facts) in FIXTURE.items():
        place = root / path
        if kind == "dir":
            place.mkdir()
        elif kind == "link":
            place.symlink_to(facts[0])
        else:
            place.write_text(facts[1])
            place.chmod(int(facts[0], 8))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[dict[str, tuple[Trial, Any]]]:
    home = tmp_path_factory.mktemp("rollback")
    plant(home / "tree")
    tasks = [
        {
            "id": f"case{number}",
            "title": name,
            "workspace": {"kind": "temp-copy", "path": "tree"},
            "runner": {"kind": "external-command", "command": script},
            "writes": writes,
            "verify": {"commands": [MANIFEST]},
        }
        for number, (name, (script, writes, _, _)) in enumerate(CASES.items())
    ]
    settings = settings_in(home / "home", cache)
    suite = write_suite(home, yaml.safe_dump({"tasks": tasks}), HEAD)
    yield dict(zip(CASES, graded(suite, settings), strict=True))
    forget(settings)


def graded(suite: Path, settings: Settings) -> Iterator[tuple[Trial, Any]]:
    """Each trial with what its grader printed, in the order of the suite."""
    end, verified = run(suite, settings, jobs=2)
    assert verified.complete
    order = {trial.task: number for number, trial in enumerate(verified.plan.tasks)}
    for trial in sorted(verified.trials, key=lambda trial: order[trial.task]):
        grader = trial.observations.grader
        kept = grader.commands[0].stdout.kept if grader else None
        data = (end.directory / "blobs" / kept[:2] / kept).read_bytes() if kept else b"null"
        yield trial, json.loads(data)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.contract("S36", "S37", "S39")
def test_what_the_grader_sees(name: str, finished: dict[str, tuple[Trial, Any]]) -> None:
    _, writes, differs, violations = CASES[name]
    trial, seen = finished[name]
    wanted = {path: value for path, value in {**FIXTURE, **differs}.items() if value is not None}
    assert seen == wanted, trial.outcome
    enforced = trial.observations.enforced
    assert enforced is not None
    assert enforced.boundary is not None
    verdict = enforced.boundary
    assert {violation.path: violation.kind for violation in verdict.violations} == violations
    assert sorted(verdict.rolled_back) == sorted(violations)
    assert verdict.unrecoverable == ()
    assert verdict.allow == tuple(writes)
    assert verdict.status == ("rolled-back" if violations else "clean")
    outcome = trial.outcome
    if violations:
        assert (outcome.failure_class, outcome.verdict_class) == ("writes_boundary_violation", "contract")
    else:
        assert outcome.task == "passed", outcome
