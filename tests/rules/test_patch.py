"""Patches that the real Git applies: the tree that it makes is the tree that was diffed, byte for byte."""

from __future__ import annotations

import os
import subprocess
import tracemalloc
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from boxeval.rules.line_diff import Work, edits
from boxeval.rules.patch import FILE, LINK, PROGRAM, Blob, TooLarge, is_refused, quoted, section
from patch_trees import GIT, Tree, apply, git, read, write

LIMIT = 1 << 20


def patch_of(old: Tree, new: Tree, work: Work | None = None) -> bytes:
    work = work or Work()
    paths = sorted(old.keys() | new.keys())
    return b"".join(section(path, old.get(path), new.get(path), work, LIMIT) for path in paths)


def check(root: Path, old: Tree, new: Tree) -> bytes:
    patch = patch_of(old, new)
    patch.decode()
    write(root, old)
    apply(root, patch)
    assert read(root) == new
    apply(root, patch, "-R")
    assert read(root) == old
    return patch


def f(data: bytes, mode: str = FILE) -> Blob:
    return Blob(mode, data)


def link(target: bytes) -> Blob:
    return Blob(LINK, target)


MANY = b"".join(b"line %d\n" % n for n in range(60))
CASES: dict[str, tuple[Tree, Tree]] = {
    "nothing": ({b"a": f(b"a\n")}, {b"a": f(b"a\n")}),
    "changed": ({b"a": f(b"1\n2\n3\n")}, {b"a": f(b"1\ntwo\n3\n")}),
    "two hunks": ({b"a": f(MANY)}, {b"a": f(MANY.replace(b"line 3\n", b"x\n").replace(b"line 50\n", b""))}),
    "near hunks": ({b"a": f(MANY)}, {b"a": f(MANY.replace(b"e 10\n", b"\n").replace(b"e 17\n", b"\n"))}),
    "touching hunks": ({b"a": f(MANY)}, {b"a": f(MANY.replace(b"e 10\n", b"\n").replace(b"e 18\n", b"\n"))}),
    "first and last": ({b"a": f(MANY)}, {b"a": f(b"top\n" + MANY + b"end\n")}),
    "created": ({}, {b"d/e/a": f(b"new\n")}),
    "created empty": ({}, {b"a": f(b"")}),
    "deleted": ({b"d/a": f(b"old\n"), b"keep": f(b"")}, {b"keep": f(b"")}),
    "deleted empty": ({b"a": f(b""), b"keep": f(b"")}, {b"keep": f(b"")}),
    "emptied": ({b"a": f(b"old\n")}, {b"a": f(b"")}),
    "filled": ({b"a": f(b"")}, {b"a": f(b"new\n")}),
    "CRLF": ({b"a": f(b"1\r\n2\r\n3\r\n")}, {b"a": f(b"1\r\nzwei\r\n3\r\n")}),
    "CRLF to LF": ({b"a": f(b"1\r\n2\r\n")}, {b"a": f(b"1\n2\n")}),
    "created CRLF": ({}, {b"a": f(b"1\r\n2")}),
    "lone CR": ({b"a": f(b"1\r2\r3\n")}, {b"a": f(b"1\r2\rthree\n\r")}),
    "other line ends": ({b"a": f("1\u2028\x0b\x0c\x852\n".encode())}, {b"a": f("1\u2028\x0b\x0c\x85x\n".encode())}),
    "final newline lost": ({b"a": f(b"1\n2\n")}, {b"a": f(b"1\n2")}),
    "final newline gained": ({b"a": f(b"1\n2")}, {b"a": f(b"1\n2\n")}),
    "no final newline in context": ({b"a": f(b"1\n2\n3")}, {b"a": f(b"one\n2\n3")}),
    "no final newline twice": ({b"a": f(b"1")}, {b"a": f(b"2")}),
    "trailing spaces": ({b"a": f(b"1 \n\t\n \n")}, {b"a": f(b"1  \n\t \n\n\n")}),
    "like a patch": (
        {b"a": f(b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n")}, {b"a": f(b"-- \ndiff --git a/x b/x\nindex 1..2\n")},
    ),
    "NUL": ({b"a": f(b"a\0b\n")}, {b"a": f(b"a\0c\n")}),
    "not UTF-8": ({b"a": f(b"\xff\xfe\n")}, {b"a": f(b"caf\xe9\n")}),
    "text to binary": ({b"a": f(b"text\n")}, {b"a": f(bytes(range(256)) * 9)}),
    "binary created": ({}, {b"a": f(bytes(range(256)))}),
    "binary deleted": ({b"a": f(bytes(range(256))), b"keep": f(b"")}, {b"keep": f(b"")}),
    "binary and mode": ({b"a": f(b"\0")}, {b"a": f(b"\0\0", PROGRAM)}),
    "mode": ({b"a": f(b"1\n")}, {b"a": f(b"1\n", PROGRAM)}),
    "mode and content": ({b"a": f(b"1\n", PROGRAM)}, {b"a": f(b"2\n")}),
    "mode of an empty file": ({b"a": f(b"")}, {b"a": f(b"", PROGRAM)}),
    "program created": ({}, {b"a": f(b"#!/bin/sh\n", PROGRAM)}),
    "renamed": ({b"a": f(MANY)}, {b"b": f(MANY)}),
    "swapped": ({b"a": f(b"1\n"), b"b": f(b"2\n")}, {b"a": f(b"2\n"), b"b": f(b"1\n")}),
    "link created": ({}, {b"l": link(b"../../etc/passwd")}),
    "link changed": ({b"l": link(b"a")}, {b"l": link(b"b b\nc")}),
    "link deleted": ({b"l": link(b"a"), b"keep": f(b"")}, {b"keep": f(b"")}),
    "link that is not UTF-8": ({b"l": link(b"\xff")}, {b"l": link(b"\xfe"), b"m": link(b"\xfd")}),
    "file to link": ({b"a": f(b"1\n")}, {b"a": link(b"b")}),
    "link to file": ({b"a": link(b"b")}, {b"a": f(b"1\n", PROGRAM)}),
    "file to directory": ({b"a": f(b"1\n")}, {b"a/b": f(b"1\n")}),
    "directory to file": ({b"a/b": f(b"1\n"), b"a/c": f(b"")}, {b"a": f(b"1\n")}),
    "directory to link": ({b"a/b": f(b"1\n")}, {b"a": link(b"c"), b"c/b": f(b"1\n")}),
    "link to directory": ({b"a": link(b"c"), b"c/x": f(b"")}, {b"a/b": f(b"1\n"), b"c/x": f(b"")}),
    **{
        f"name {name!r}": ({name: f(b"1\n")}, {name: f(b"2\n"), b"d " + name + b"/" + name: f(b"3\n")})
        for name in (
            b"sp ace", b"tab\there", b"new\nline", b'quo"te', b"back\\slash", "é".encode(), b"\xff\xfe", b"\x1b[2J",
            b"-rf", b" lead", b"trail ", b"n" * 250, b"\x7f\x01", b"'", b"b/a b", b".gitignore", b"dev/null",
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.contract("S33")
def test_git_applies_it_and_takes_it_back(name: str, tmp_path: Path) -> None:
    check(tmp_path / "tree", *CASES[name])


@pytest.mark.contract("S33")
def test_all_at_once_on_a_clean_repository(tmp_path: Path) -> None:
    """E7: what was exported applies to a checkout, index included, and gives the same tree object."""
    old: Tree = {}
    new: Tree = {}
    for number, (before, after) in enumerate(CASES.values()):
        old.update({b"%d/%s" % (number, path): blob for path, blob in before.items()})
        new.update({b"%d/%s" % (number, path): blob for path, blob in after.items()})
    for name, tree in (("old", old), ("new", new)):
        write(tmp_path / name, tree)
        git(tmp_path / name, "init", "-q")
        git(tmp_path / name, "add", "-A", ".")
    git(tmp_path / "old", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "base")
    apply(tmp_path / "old", patch_of(old, new), "--index")
    assert git(tmp_path / "old", "write-tree") == git(tmp_path / "new", "write-tree")


NAMES = st.lists(
    st.binary(min_size=1, max_size=6).filter(
        lambda name: not set(name) & {0, 0x2F} and name not in (b".", b"..") and not is_refused(name, True)
    ),
    min_size=1,
    max_size=2,
).map(b"/".join)
LINES = st.lists(st.sampled_from([b"a", b"b", b"", b"\r", b" ", b"-", b"+", b"\\"]), max_size=12)
CONTENTS = st.one_of(LINES.map(b"\n".join), st.binary(max_size=200), st.text(max_size=40).map(str.encode))
TARGETS = st.binary(max_size=20).filter(lambda target: b"\0" not in target)
BLOBS = st.one_of(
    st.builds(Blob, st.sampled_from([FILE, PROGRAM]), CONTENTS),
    # Git cannot look below a link that loops, so not even a patch of its own replaces one by a directory.
    st.builds(Blob, st.just(LINK), TARGETS.map(b"nowhere/".__add__)),
)


def possible(tree: Tree) -> Tree:
    """Without entries that would lie below a file."""
    return {path: blob for path, blob in tree.items() if path.split(b"/")[0] not in tree or b"/" not in path}


TREES = st.dictionaries(NAMES, BLOBS, max_size=5).map(possible)


@given(TREES, TREES, st.integers(0, 5))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_two_trees(tmp_path_factory: pytest.TempPathFactory, old: Tree, new: Tree, shared: int) -> None:
    new = possible({**dict(list(old.items())[:shared]), **new})
    check(tmp_path_factory.mktemp("any") / "tree", old, new)


@given(st.lists(st.sampled_from(b"abc"), max_size=30), st.lists(st.sampled_from(b"abc"), max_size=30))
def test_edits_turn_one_list_into_the_other_with_the_fewest_lines(one: list[int], other: list[int]) -> None:
    old, new = [bytes([c]) for c in one], [bytes([c]) for c in other]
    made, at, touched = [], 0, 0
    found = edits(old, new, Work())
    for edit in found:
        made += old[at : edit.old_from] + new[edit.new_from : edit.new_to]
        touched += edit.old_to - edit.old_from + edit.new_to - edit.new_from
        at = edit.old_to
    assert made + old[at:] == new
    assert touched == len(old) + len(new) - 2 * longest_common(old, new)
    assert all(a.old_to < b.old_from for a, b in pairwise(found))


def longest_common(old: list[bytes], new: list[bytes]) -> int:
    """By the textbook's table."""
    row = [0] * (len(new) + 1)
    for one in old:
        last = row
        row = [0]
        for n, other in enumerate(new):
            row.append(last[n] + 1 if one == other else max(last[n + 1], row[n]))
    return row[-1]


def test_the_work_is_bounded_and_the_patch_still_right(tmp_path: Path) -> None:
    work = Work(10_000)
    old = {b"a": f(b"".join(b"%d\n" % (n % 97) for n in range(20_000)))}
    new = {b"a": f(b"".join(b"%d\n" % (n % 89) for n in range(20_000)))}
    patch = patch_of(old, new, work)
    assert -50_000 < work.left < 0
    write(tmp_path / "tree", old)
    apply(tmp_path / "tree", patch)
    assert read(tmp_path / "tree") == new


@pytest.mark.parametrize("data", [b"x\n" * 600, os.urandom(1200)])
def test_a_section_past_its_limit_is_refused(data: bytes) -> None:
    with pytest.raises(TooLarge):
        section(b"a", None, f(data), Work(), 1000)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        (b"a/plain-name_1.py", b"a/plain-name_1.py"),
        ("a/ä".encode(), rb'"a/\303\244"'),
        (b'a/"\\\t\n\x01', rb'"a/\"\\\t\n\001"'),
    ],
)
def test_names_are_quoted_as_git_does(name: bytes, wanted: bytes) -> None:
    assert quoted(name) == wanted


@pytest.mark.parametrize(
    "name", [b".git", b".GIT", b".git ", b".git.", b"git~1", b".git:x", b"x\\.git", b"a/.Git/b"]
)
def test_names_that_git_refuses_are_known(name: bytes, tmp_path: Path) -> None:
    assert is_refused(name, link=False)
    patch = section(name, None, f(b"1\n"), Work(), LIMIT)
    assert subprocess.run(
        ["git", "apply"], cwd=tmp_path, env=GIT, input=patch, capture_output=True
    ).returncode


@pytest.mark.parametrize("name", [b".gitmodules", b".GITMODULES ", b"gitmod~1", b"GI7EBA~1"])
def test_links_that_git_refuses_are_known(name: bytes, tmp_path: Path) -> None:
    assert is_refused(name, link=True)
    assert not is_refused(name, link=False)
    patch = section(name, None, link(b"x"), Work(), LIMIT)
    assert subprocess.run(
        ["git", "apply"], cwd=tmp_path, env=GIT, input=patch, capture_output=True
    ).returncode


def test_text_past_its_lines_is_a_binary_patch_and_applies_too(tmp_path: Path) -> None:
    old, new = {b"a": f(MANY), b"b": f(b"1\n")}, {b"a": f(MANY + b"end\n"), b"b": f(b"2\n")}
    patch = patch_of(old, new, Work(lines=100))
    # The first has 121 lines in both versions, the second 2.
    assert (patch.count(b"GIT binary patch\n"), patch.count(b"\n-1\n+2\n")) == (1, 1)
    write(tmp_path / "tree", old)
    apply(tmp_path / "tree", patch)
    assert read(tmp_path / "tree") == new


def test_a_file_of_many_lines_takes_no_more_memory_than_it_is_long() -> None:
    """It took 200 bytes of the controller's for each of them: 6 GB for a file of 32 MiB."""
    tracemalloc.start()
    try:
        assert b"GIT binary patch" in section(b"a", None, f(b"\n" * (8 << 20)), Work(), LIMIT)
        assert tracemalloc.get_traced_memory()[1] < 24 << 20
    finally:
        tracemalloc.stop()
