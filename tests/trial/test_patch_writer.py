"""What a trial's patch leaves out is told, and a patch that cannot be made is never an empty one."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from boxeval.receipts.blobs import BlobStore
from boxeval.sandbox.changes import Told
from boxeval.sandbox.keeper_frames import RawChange, Side
from boxeval.spec.trial import EntryKind, Patch
from boxeval.trial.patch import PatchWriter

FIFO = Side(EntryKind.FIFO, 0o644, 0)
DIRECTORY = Side(EntryKind.DIRECTORY, 0o755, 0)


def side(data: bytes, mode: int = 0o644) -> Side:
    return Side(EntryKind.FILE, mode, len(data), sha256=hashlib.sha256(data).hexdigest())


def link(target: bytes) -> Side:
    return Side(EntryKind.SYMLINK, 0o777, len(target), target)


def add(writer: PatchWriter, path: bytes, new: Side | bytes | None, old: Side | bytes | None = None) -> None:
    change = RawChange(
        path,
        side(new) if isinstance(new, bytes) else new,
        side(old) if isinstance(old, bytes) else old,
    )
    told = Told(change, change.new.sha256 if change.new else None, old if isinstance(old, bytes) else None)
    writer.add(told, new if isinstance(new, bytes) else None)


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "blobs")


def text(patch: Patch, blobs: BlobStore) -> bytes:
    assert patch.sha256
    data = blobs.get(patch.sha256)
    assert patch.size_bytes == len(data)
    return data


def test_nothing_changed_is_an_empty_patch(blobs: BlobStore) -> None:
    patch = PatchWriter().finish(blobs)
    assert (patch.complete, patch.reasons, text(patch, blobs)) == (True, (), b"")


def test_sections_come_sorted_and_modes_beside_the_executable_bit_do_not_count(blobs: BlobStore) -> None:
    writer = PatchWriter()
    add(writer, b"b", b"1\n")
    add(writer, b"a", None, b"2\n")
    add(writer, b"c", side(b"", 0o600), side(b"", 0o644))
    add(writer, b"d", Side(EntryKind.DIRECTORY, 0o700, 0), DIRECTORY)
    data = text(patch := writer.finish(blobs), blobs)
    assert [line for line in data.splitlines() if line.startswith(b"diff")] == [
        b"diff --git a/a b/a",
        b"diff --git a/b b/b",
    ]
    assert patch.complete


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ([(b"pipe", FIFO)], "neither a file nor a link: pipe"),
        ([(b"s1", Side(EntryKind.SOCKET, 0, 0)), (b"d", Side(EntryKind.DEVICE, 0, 0))],
         "neither a file nor a link: s1 and 1 more"),
        ([(b"sub", DIRECTORY), (b"sub/.git", DIRECTORY), (b"sub/.git/HEAD", b"x"), (b"sub/a", b"x")],
         "a nested repository changed; of it the patch has the files alone: sub"),
        ([(b"x.gitx/y/.git/HEAD", b"x")],
         "a nested repository changed; of it the patch has the files alone: x.gitx/y"),
        ([(b".GIT", b"x")], "a name that Git refuses: .GIT"),
        ([(b".gitmodules", link(b"x"))], "a name that Git refuses: .gitmodules"),
        ([(b"e", DIRECTORY), (b"e/e", DIRECTORY)], "an empty directory, which Git does not have: e and 1 more"),
        ([(b"\xff\x1b", FIFO)], "neither a file nor a link: \\xff\x1b"),
    ],
)  # fmt: skip
@pytest.mark.contract("S33")
def test_what_is_left_out_is_told(
    entries: list[tuple[bytes, Side | bytes]], reason: str, blobs: BlobStore
) -> None:
    writer = PatchWriter()
    for path, new in [*entries, (b"zz", b"kept\n")]:
        add(writer, path, new)
    patch = writer.finish(blobs)
    assert (patch.complete, patch.reasons) == (False, (reason,))
    assert b"+kept\n" in text(patch, blobs)


def test_changes_in_a_nested_repository_are_told_though_its_own_directory_did_not_change(
    blobs: BlobStore,
) -> None:
    writer = PatchWriter()
    add(writer, b"sub/a", b"new\n", b"old\n")
    patch = writer.finish(blobs, (b"sub", b"x/.git/modules/y"))
    assert not patch.complete
    assert patch.reasons == ("a nested repository changed; of it the patch has the files alone: sub",)
    assert b"+new\n" in text(patch, blobs)


@pytest.mark.contract("S33")
def test_history_is_no_part_of_a_patch_and_leaves_it_complete(blobs: BlobStore) -> None:
    writer = PatchWriter()
    add(writer, b".git/HEAD", None, b"ref: refs/heads/main\n")
    add(writer, b".git/hooks/post-commit", side(b"", 0o755))
    add(writer, b"a", b"x\n")
    patch = writer.finish(blobs)
    assert patch.complete
    assert patch.reasons == (
        "what changed in the repository itself is no part of a patch: .git/HEAD and 1 more",
    )
    assert b".git" not in text(patch, blobs).replace(b"--git", b"")


@pytest.mark.parametrize(
    ("path", "new", "old"),
    [
        (b"large", b"x\n" * 600, None),
        (b"was-large", None, b"x\n" * 600),
        (b"content-not-kept", side(b"much"), None),
        (b"old-not-sent", b"x\n", side(b"much")),
    ],
)
@pytest.mark.contract("S33")
def test_a_patch_past_its_cap_is_unavailable_and_says_why(
    path: bytes, new: Side | bytes | None, old: Side | bytes | None, blobs: BlobStore
) -> None:
    writer = PatchWriter(limit=1000)
    add(writer, b"before", b"fits\n")
    add(writer, path, new, old)
    add(writer, b"pipe", FIFO)
    add(writer, b"zz", b"fits\n")
    patch = writer.finish(blobs)
    assert (patch.sha256, patch.complete, patch.size_bytes) == (None, False, 0)
    assert patch.reasons[0] == f"the patch, or what it is made of, is too large, at: {path.decode()}"
    assert len(patch.reasons) == 2


def test_a_mode_alone_needs_no_content(blobs: BlobStore) -> None:
    writer = PatchWriter()
    old = side(b"too large to be sent")
    told = Told(RawChange(b"a", Side(EntryKind.FILE, 0o755, old.size_bytes), old), old.sha256, None)
    writer.add(told, None)
    assert text(writer.finish(blobs), blobs) == b"diff --git a/a b/a\nold mode 100644\nnew mode 100755\n"
