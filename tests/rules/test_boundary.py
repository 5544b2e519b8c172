"""The write boundary: what an entry of `writes` allows, what goes with a violation, and the verdict."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

import run_samples as samples
from boxeval.rules import boundary
from boxeval.rules.protect import caches_beside, holding, protected
from boxeval.spec.trial import Change, ChangeKind, Collected, Enforcement, EntryKind, Unrecoverable

F, D, L, P = EntryKind.FILE, EntryKind.DIRECTORY, EntryKind.SYMLINK, EntryKind.FIFO
BASE = "0" * 64


def change(path: str, was: EntryKind | None, kind: EntryKind | None, **more: Any) -> Change:
    how = ChangeKind.MODIFIED
    if was is None or kind is None:
        how = ChangeKind.CREATED if was is None else ChangeKind.DELETED
    return Change(path=path, change=how, kind=kind, was=was, **more)


@pytest.mark.contract("S36")
@pytest.mark.parametrize(
    ("entry", "path", "was", "kind", "allowed"),
    [
        ("a", "a", None, F, True),
        ("a", "a", F, F, True),
        ("a", "a", F, None, True),
        ("./a", "a", F, F, True),
        ("a", "a", F, L, False),
        ("a", "a", None, L, False),
        ("a", "a", None, D, False),
        ("a", "a", D, None, False),
        ("a", "a", None, P, False),
        ("a", "a/b", None, F, False),
        ("a", "ab", None, F, False),
        ("a", "b/a", None, F, False),
        ("a", "A", None, F, False),
        ("d/", "d", None, D, True),
        ("d/", "d", D, D, True),
        ("d/", "d", D, None, True),
        ("d/", "d", D, L, False),
        ("d/", "d", D, F, False),
        ("d/", "d", F, D, False),
        ("d/", "d/x", None, F, True),
        (".//d//", "d/x", None, F, True),
        ("d/", "d/x/y", F, None, True),
        ("d/", "d/x", F, D, True),
        ("d/", "d/x", None, L, True),
        ("d/", "d/x", None, P, False),
        ("d/", "dx", None, F, False),
        ("d/e/f", "d", None, D, True),
        ("d/e/f", "d/e", None, D, True),
        ("d/e/f", "d", D, D, False),
        ("d/e/f", "d", None, F, False),
        ("d/e/f", "d/e", F, D, False),
        ("d/e/", "d", None, D, True),
        ("d/", "d/.git/config", F, F, False),
        ("d/", "d/.git", None, D, False),
        ("d/", "d/.gitignore", None, F, True),
        (".git/", ".git/config", F, F, True),
        ("d/.git/", "d/.git/config", F, F, True),
        (".git/hooks/", ".git/config", F, F, False),
        ("./", "x/y", None, F, True),
        ("./", ".git/config", F, F, False),
    ],
)
def test_allowed(entry: str, path: str, was: EntryKind | None, kind: EntryKind | None, allowed: bool) -> None:
    assert boundary.allowed(change(path, was, kind), [entry]) is allowed


def test_nothing_is_allowed_by_an_empty_list_and_all_without_one() -> None:
    changes = [change("a", None, F)]
    assert boundary.violations(changes, ()) == tuple(changes)
    assert boundary.violations(changes, None) == ()


@pytest.mark.parametrize(
    ("changes", "writes", "found"),
    [
        # A new directory in place of a file goes as a whole, whatever is in it.
        ([change("f", F, D), change("f/x", None, F)], ["f/x"], ["f", "f/x"]),
        # What comes back needs its directory, though to take that away alone was allowed.
        (
            [change("d", D, None), change("d/.git", D, None), change("d/.git/config", F, None)],
            ["d/"],
            ["d", "d/.git", "d/.git/config"],
        ),
        (
            [change("d/e", D, F), change("d/e/.git", D, None), change("d/e/x", F, None)],
            ["d/"],
            ["d/e", "d/e/.git"],
        ),
        ([change("a", None, D), change("a/b", None, F)], ["c"], ["a", "a/b"]),
        ([change("a", None, D), change("a/b", None, F)], ["a/c"], ["a/b"]),
    ],
)
def test_what_goes_with_a_violation(changes: list[Change], writes: list[str], found: list[str]) -> None:
    assert [one.path for one in boundary.violations(changes, writes)] == found


@pytest.mark.contract("S37")
@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (change("a", None, F), "created"),
        (change("a", F, None), "deleted"),
        (change("a", F, F, sha256="1" * 64, was_sha256="2" * 64), "changed"),
        (change("a", F, F, sha256="1" * 64, was_sha256="1" * 64), "mode"),
        (change("a", D, D), "mode"),
        (change("a", L, L), "link"),
        (change("a", F, L), "kind"),
        (change("a", D, F), "kind"),
    ],
)
def test_kinds_of_violation(found: Change, kind: str) -> None:
    assert boundary.described(found).kind == kind


@pytest.mark.contract("S38")
def test_what_is_excluded_stays_and_so_does_the_new_directory_around_it() -> None:
    found = [change("logs", None, D), change("logs/a.log", None, F), change("logs/b", None, F)]
    undone, left = boundary.undoable(found, ["*.log"])
    assert [one.path for one in undone] == ["logs/b"]
    assert left == {"logs/a.log": boundary.EXCLUDED, "logs": boundary.HOLDS_EXCLUDED}
    assert boundary.undoable(found, ()) == (tuple(found), {})


def judge(changes: list[Change], kept: list[Change] | Collected | None, **more: Any) -> Any:
    after = Collected(changes=tuple(kept)) if isinstance(kept, list) else kept
    faults = tuple(Unrecoverable(path=path, reason=why) for path, why in more.pop("faults", {}).items())
    collected = more.pop("collected", Collected(changes=tuple(changes)))
    enforced = Enforcement(kept=after, faults=faults)
    return boundary.judge("s", ("w/",), more.pop("excludes", ()), BASE, collected, enforced)


BAD, GOOD = change("f", F, F, sha256="1" * 64), change("w/a", None, F)


@pytest.mark.contract("S38", "S39")
@pytest.mark.parametrize(
    ("verdict", "status", "rolled_back", "left"),
    [
        (judge([], None), "clean", (), {}),
        (judge([GOOD], None), "clean", (), {}),
        (judge([BAD, GOOD], [GOOD]), "rolled-back", ("f",), {}),
        (judge([BAD, GOOD], [GOOD, BAD]), "rollback-incomplete", (), {"f": "differs from the snapshot"}),
        (judge([BAD], [BAD], faults={"f": "EIO"}), "rollback-incomplete", (), {"f": "EIO"}),
        (judge([BAD], None), "rollback-incomplete", (), {"f": "differs from the snapshot"}),
        (judge([BAD], Collected(limit="too many")), "rollback-incomplete", (), {"f": "too many"}),
        (judge([BAD], [], faults={"w/x": "ENOSPC"}), "rollback-incomplete", ("f",), {"w/x": "ENOSPC"}),
        (judge([BAD], None, excludes=["f"]), "rollback-incomplete", (), {"f": "excluded from the snapshot"}),
        (
            judge([], None, collected=Collected(limit="more than 9 bytes")),
            "rollback-incomplete",
            (),
            {".": "more than 9 bytes"},
        ),
    ],
)
def test_a_verdict(verdict: Any, status: str, rolled_back: tuple[str, ...], left: dict[str, str]) -> None:
    assert verdict.status == status
    assert verdict.rolled_back == rolled_back
    assert [one.path for one in verdict.unrecoverable] == list(left)
    assert all(reason in one.reason for one, reason in zip(verdict.unrecoverable, left.values(), strict=True))


@pytest.mark.contract("S29", "S39")
def test_the_digest_is_over_the_canonical_verdict_without_it() -> None:
    verdict = judge([BAD, GOOD], [GOOD])
    plain = {
        "allow": ["w/"],
        "baseline": BASE,
        "changed": ["f", "w/a"],
        "rolledBack": ["f"],
        "status": "rolled-back",
        "step": "s",
        "unrecoverable": [],
        "violations": [{"kind": "changed", "path": "f"}],
    }
    canonical = json.dumps(plain, separators=(",", ":"), sort_keys=True)
    assert verdict.digest == hashlib.sha256(canonical.encode()).hexdigest()


def test_the_baseline_is_over_the_fixture_and_what_the_steps_before_have_left() -> None:
    def step(collected: list[Change], kept: list[Change] | None) -> Any:
        after = None if kept is None else Collected(changes=tuple(kept))
        return samples.step(
            "x", collected=Collected(changes=tuple(collected)), enforced=Enforcement(kept=after)
        )

    clean, undone = step([GOOD], None), step([GOOD, BAD], [GOOD])
    assert boundary.baseline(BASE, [clean]) == boundary.baseline(BASE, [undone])
    found = {
        boundary.baseline(BASE, []),
        boundary.baseline("1" * 64, []),
        boundary.baseline(BASE, [clean]),
        boundary.baseline(BASE, [step([GOOD, BAD], None)]),
        boundary.baseline(BASE, [clean, clean]),
    }
    assert len(found) == 5


def test_protect_takes_what_is_named_and_the_directories_around_it() -> None:
    around = holding(["tests/unit/test_a.py"])
    assert around == {"tests", "tests/unit"}
    changes = [
        change("src", D, D),
        change("tests", D, D),
        change("tests/helper.py", F, F),
        change("tests/unit", D, L),
        change("tests/unit/helper.py", F, None),
        change("tests/unit/test_a.py", F, None),
    ]
    found = protected(changes, ["test_*.py"], around)
    assert [one.path for one in found] == ["tests", "tests/unit", "tests/unit/test_a.py"]


def test_a_cache_belongs_to_the_protected_sources_beside_it() -> None:
    changes = [
        change("__pycache__", None, L),
        change("src/__pycache__", None, D),
        change("src/__pycache__/test_a.pyc", None, F),
        change("tests/__pycache__", D, D),
        change("tests/__pycache__/deep/x", F, F),
        change("tests/__pycache__x", None, F),
    ]
    found = protected(changes, ["tests/test_a.py"], holding(["tests/test_a.py"]))
    assert [one.path for one in found] == ["__pycache__", "tests/__pycache__", "tests/__pycache__/deep/x"]


def test_where_caches_of_sources_lie() -> None:
    paths = [b"a.py", b"tests", b"tests/b.py", b"tests/c.txt", b"d/__pycache__", b"d/e.py", b"f/g.txt"]
    assert caches_beside(paths) == {b"__pycache__", b"tests/__pycache__"}
