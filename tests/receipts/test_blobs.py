from __future__ import annotations

import errno
import hashlib
import os
import threading
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

import pytest

from boxeval.errors import StorageError, TamperError
from boxeval.receipts.blobs import SYNC_ALL_ABOVE, BlobStore

HELLO = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"  # sha256sum of "hello"


@pytest.mark.contract("G71")
def test_a_blob_is_named_by_its_content_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    store = BlobStore(tmp_path / "blobs")
    assert store.put(b"hello") == HELLO
    file = tmp_path / "blobs" / "2c" / HELLO
    assert file.read_bytes() == b"hello"
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert store.get(HELLO) == b"hello"
    store.check(HELLO)
    assert list(store.names()) == [HELLO]


def test_a_stream_is_kept_piece_by_piece(tmp_path: Path) -> None:
    store = BlobStore(tmp_path / "blobs")
    assert store.put_stream(iter([b"he", b"", b"llo"])) == (HELLO, 5)
    assert store.put_stream([]) == (hashlib.sha256(b"").hexdigest(), 0)


def test_equal_content_is_kept_once_by_many_threads(tmp_path: Path) -> None:
    store = BlobStore(tmp_path / "blobs")
    threads = [threading.Thread(target=lambda n=n: store.put(b"%d" % (n % 3))) for n in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.flush()
    assert len(list(store.names())) == 3
    assert sorted(p.name for p in (tmp_path / "blobs").iterdir() if p.is_file()) == []


def test_a_fault_of_the_source_stays_its_own_and_leaves_no_draft(tmp_path: Path) -> None:
    def source() -> Iterator[bytes]:
        yield b"some"
        yield b"more"
        raise ConnectionResetError("the engine went away")

    store = BlobStore(tmp_path / "blobs")
    with pytest.raises(ConnectionResetError):
        store.put_stream(source())
    assert list((tmp_path / "blobs").iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_takes_no_more_is_a_storage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    class Full(FileIO):
        def write(self, _data: object, /) -> int:
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr("boxeval.receipts.blobs.FileIO", Full)
    with pytest.raises(StorageError, match=os.strerror(number)):
        BlobStore(tmp_path / "blobs").put(b"hello")
    assert list((tmp_path / "blobs").iterdir()) == []


def test_flush_makes_every_new_blob_durable_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr("boxeval.receipts.blobs.sync_path", synced.append)
    store = BlobStore(tmp_path / "blobs")
    store.put(b"hello")
    store.put(b"hello")
    store.flush()
    store.flush()
    assert synced == [tmp_path / "blobs" / "2c" / HELLO]


def test_very_many_blobs_are_made_durable_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr("os.sync", lambda: calls.append("all"))
    store = BlobStore(tmp_path / "blobs")
    for number in range(SYNC_ALL_ABOVE + 1):
        store.put(b"%d" % number)
    store.flush()
    assert calls == ["all"]


@pytest.mark.contract("G71")
def test_a_changed_or_missing_blob_is_never_given_out(tmp_path: Path) -> None:
    store = BlobStore(tmp_path / "blobs")
    store.put(b"hello")
    file = tmp_path / "blobs" / "2c" / HELLO
    file.write_bytes(b"hellO")
    for ask in (store.get, store.check):
        with pytest.raises(TamperError, match="not what its name says"):
            ask(HELLO)
    file.unlink()
    for ask in (store.get, store.check):
        with pytest.raises(TamperError, match="missing"):
            ask(HELLO)


def test_a_link_or_fifo_in_place_of_a_blob_is_not_followed(tmp_path: Path) -> None:
    store = BlobStore(tmp_path / "blobs")
    store.put(b"hello")
    file = tmp_path / "blobs" / "2c" / HELLO
    outside = tmp_path / "outside"
    file.rename(outside)
    file.symlink_to(outside)
    with pytest.raises(TamperError, match="cannot be read"):
        store.get(HELLO)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(TamperError, match="not a regular file"):
        store.get(HELLO)


@pytest.mark.parametrize("name", ["", "../plan.json", "2c/" + HELLO, HELLO.upper(), HELLO[:-1]])
def test_what_is_no_digest_is_no_blob(tmp_path: Path, name: str) -> None:
    with pytest.raises(TamperError, match="not a SHA-256"):
        BlobStore(tmp_path).get(name)


def test_drafts_and_foreign_files_are_not_blobs(tmp_path: Path) -> None:
    store = BlobStore(tmp_path / "blobs")
    store.put(b"hello")
    (tmp_path / "blobs" / ".tmp-1").touch()
    (tmp_path / "blobs" / "2c" / "notes.txt").touch()
    (tmp_path / "blobs" / "2c" / ("0" * 64)).touch()
    assert list(store.names()) == [HELLO]
    assert list(BlobStore(tmp_path / "none").names()) == []
