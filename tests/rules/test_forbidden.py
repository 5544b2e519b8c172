from __future__ import annotations

import pytest

import run_samples as samples
from boxeval.rules.forbidden import match
from boxeval.spec.trial import EntryKind


@pytest.mark.contract("S13")
@pytest.mark.parametrize("how", ["created", "modified", "deleted"])
def test_created_modified_and_deleted_all_count(how: str) -> None:
    kind = None if how == "deleted" else EntryKind.FILE
    found = samples.change("tests/test_a.py", how, kind, was=EntryKind.FILE)
    assert match([found], ("tests/test_a.py",)) == ("tests/test_a.py",)


@pytest.mark.contract("S13")
@pytest.mark.parametrize(
    ("pattern", "path", "hit"),
    [
        ("tests/", "tests/deep/conftest.py", True),
        ("tests/", "src/tests/a.py", True),
        ("/tests/", "src/tests/a.py", False),
        ("tests", "tests/.hidden", True),
        ("tests/**", "tests/a/b", True),
        ("*.lock", "a/poetry.lock", True),
        ("/*.lock", "a/poetry.lock", False),
        ("**/conftest.py", "conftest.py", True),
        ("a/*/c", "a/b/c", True),
        ("a/*/c", "a/b/x/c", False),
        ("[ab].txt", "b.txt", True),
        ("tests/", "tests", False),
        ("Tests/", "tests/a", False),
        ("./tests/", "tests/a", True),
        ("./tests/", "src/tests/a", False),
        ("tests/", "contests/a", False),
        ("tests/", "a\nb/tests/x", True),
        ("*.py", "a\n.py", True),
        ("*.py", "a.py\n", False),
        ("a b.txt", "a b.txt", True),
        ("é.txt", "é.txt", True),
    ],
)
def test_patterns_are_those_of_gitignore(pattern: str, path: str, hit: bool) -> None:
    assert bool(match([samples.change(path)], (pattern,))) is hit


def test_a_negated_pattern_lets_its_path_through() -> None:
    changes = [samples.change("docs/a.md"), samples.change("docs/b.md")]
    assert match(changes, ("docs/*", "!docs/b.md")) == ("docs/a.md",)
    assert match(changes, ("docs/*", "!./docs/b.md")) == ("docs/a.md",)


@pytest.mark.parametrize(
    ("kind", "was", "hit"),
    [
        (EntryKind.DIRECTORY, None, True),
        (None, EntryKind.DIRECTORY, True),
        (EntryKind.SYMLINK, None, True),
        (EntryKind.SYMLINK, EntryKind.DIRECTORY, True),
        (EntryKind.FIFO, EntryKind.DIRECTORY, True),
        (EntryKind.FILE, None, False),
    ],
)
def test_a_directory_pattern_names_the_directory_and_what_stands_in_for_it(
    kind: EntryKind | None, was: EntryKind | None, hit: bool
) -> None:
    how = "deleted" if kind is None else "modified" if was else "created"
    assert bool(match([samples.change("tests", how, kind, was=was)], ("tests/",))) is hit


def test_all_paths_are_named_in_order_and_none_without_patterns() -> None:
    changes = [samples.change(p) for p in ("z.txt", "a.txt", "b.md")]
    assert match(changes, ("*.txt",)) == ("z.txt", "a.txt")
    assert match(changes, ()) == ()
    assert match([], ("*",)) == ()
