"""What goes back into the operator's own directory, and what never does. The blobs and changes are made by hand."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

import run_samples as samples
from boxeval.receipts.blobs import BlobStore
from boxeval.run.write_back import write_back
from boxeval.spec.trial import Change, ChangeKind, Collected, EntryKind

FILE, DIRECTORY, SYMLINK = EntryKind.FILE, EntryKind.DIRECTORY, EntryKind.SYMLINK


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def change(path: str, kind: EntryKind | None, was: EntryKind | None, **more: Any) -> Change:
    how = ChangeKind.DELETED if kind is None else ChangeKind.CREATED if was is None else ChangeKind.MODIFIED
    return Change(path=path, change=how, kind=kind, was=was, **more)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "d").mkdir(parents=True)
    (root / "a").write_bytes(b"one\n")
    (root / "d" / "b").write_bytes(b"bee\n")
    (root / "link").symlink_to("a")
    return root


def apply(root: Path, tmp_path: Path, *changes: Change, contents: tuple[bytes, ...] = ()) -> tuple[str, ...]:
    blobs = BlobStore(tmp_path / "blobs")
    for content in contents:
        blobs.put(content)
    ordered = tuple(sorted(changes, key=lambda one: one.path))
    seen = samples.seen(collected=Collected(changes=ordered))
    return write_back(root, samples.trial(samples.task("t"), seen, 1), blobs)


def test_changes_are_applied(root: Path, tmp_path: Path) -> None:
    told = apply(
        root,
        tmp_path,
        change("a", FILE, FILE, mode=0o755, sha256=sha(b"two\n"), was_sha256=sha(b"one\n")),
        change("d", None, DIRECTORY),
        change("d/b", None, FILE, was_sha256=sha(b"bee\n")),
        change("new", DIRECTORY, None, mode=0o750),
        change("new/c", FILE, None, mode=0o640, sha256=sha(b"sea\n")),
        change("link", SYMLINK, SYMLINK, mode=0o777, link="new/c", was_link="a"),
        contents=(b"two\n", b"sea\n"),
    )
    assert told == ()
    assert (root / "a").read_bytes() == b"two\n"
    assert (root / "a").stat().st_mode & 0o7777 == 0o755
    assert not (root / "d").exists()
    assert (root / "new").stat().st_mode & 0o7777 == 0o750
    assert (root / "new" / "c").stat().st_mode & 0o7777 == 0o640
    assert str((root / "link").readlink()) == "new/c"
    assert {place.name for place in root.iterdir()} == {"a", "new", "link"}


@pytest.mark.parametrize(
    "harm",
    [
        change("a", FILE, FILE, sha256=sha(b"x"), was_sha256=sha(b"not what is there")),
        change("d/b", FILE, None, sha256=sha(b"x")),
        change("../out", FILE, None, sha256=sha(b"x")),
        change("/out", FILE, None, sha256=sha(b"x")),
        change("d/../../out", FILE, None, sha256=sha(b"x")),
        change(".git/hooks/post-checkout", FILE, None, mode=0o755, sha256=sha(b"x")),
        change("s", SYMLINK, None, link="/etc"),
        change("s", SYMLINK, None, link="d/../../out"),
        change("p", EntryKind.FIFO, None),
        change("n", EntryKind.DEVICE, None),
        change("missing/x", FILE, None, sha256=sha(b"x")),
        change("d", None, DIRECTORY),
        change("a", None, DIRECTORY),
        change("blobless", FILE, None, sha256=sha(b"no such blob")),
    ],
)
def test_what_may_not_be_applied_is_left_out_and_told(harm: Change, root: Path, tmp_path: Path) -> None:
    before = sorted((str(p), p.is_symlink() or p.is_dir() or p.read_bytes()) for p in tmp_path.rglob("*"))
    if harm.path == "blobless":
        with pytest.raises(Exception, match="missing"):
            apply(root, tmp_path, harm)
    else:
        (line,) = apply(root, tmp_path, harm, contents=(b"x",))
        assert line.startswith(harm.path)
    after = sorted((str(p), p.is_symlink() or p.is_dir() or p.read_bytes()) for p in tmp_path.rglob("*"))
    assert [entry for entry in after if "/blobs" not in entry[0]] == before


def test_git_s_own_files_are_left_alone_by_every_name_that_a_file_system_takes(
    root: Path, tmp_path: Path
) -> None:
    for name in (".GIT", ".git ", "git~1"):
        (root / name).mkdir()
        (line,) = apply(
            root, tmp_path, change(f"{name}/hook", FILE, None, sha256=sha(b"x")), contents=(b"x",)
        )
        assert "Git's own files" in line


def test_a_link_in_the_place_of_a_folder_is_not_followed(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "d" / "b").unlink()
    (root / "d").rmdir()
    (root / "d").symlink_to(outside)
    (line,) = apply(root, tmp_path, change("d/x", FILE, None, sha256=sha(b"x")), contents=(b"x",))
    assert line.startswith("d/x: ")
    assert list(outside.iterdir()) == []


def test_what_is_done_already_is_done_again_without_a_word(root: Path, tmp_path: Path) -> None:
    """After a crash nobody knows how far it came."""
    changes = (
        change("a", FILE, FILE, mode=0o755, sha256=sha(b"two\n"), was_sha256=sha(b"one\n")),
        change("d", None, DIRECTORY),
        change("d/b", None, FILE, was_sha256=sha(b"bee\n")),
        change("new", DIRECTORY, None, mode=0o750),
        change("new/c", FILE, None, mode=0o640, sha256=sha(b"sea\n")),
        change("link", SYMLINK, SYMLINK, mode=0o777, link="new/c", was_link="a"),
    )
    contents = (b"two\n", b"sea\n")
    assert apply(root, tmp_path, *changes, contents=contents) == ()
    (root / "new" / "c").unlink()
    assert apply(root, tmp_path, *changes, contents=contents) == ()
    assert (root / "new" / "c").read_bytes() == b"sea\n"
    (root / "a").write_bytes(b"another hand\n")
    (told,) = apply(root, tmp_path, *changes, contents=contents)
    assert told == "a: is not what it was when the fixture was read"
    assert (root / "a").read_bytes() == b"another hand\n"
