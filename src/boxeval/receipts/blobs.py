"""Content-addressed evidence of a run: `blobs/ab/abcdef...`, named by SHA-256, for its owner alone."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import threading
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from io import FileIO
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from boxeval.errors import StorageError, TamperError
from boxeval.receipts.storage import DRAFT, open_regular, sync_directory, sync_path

CHUNK_BYTES = 1024 * 1024
SYNC_ALL_ABOVE = 256
"""With more new blobs than this, one sync of the whole file system costs less than one a blob."""
_NAME = re.compile(r"[0-9a-f]{64}")


class BlobStore:
    """Blobs below one directory. Any number of threads may put and get; equal content is kept once."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._lock = threading.Lock()
        self._flushing = threading.Lock()
        self._unsynced: set[Path] = set()
        self._lost = False
        self.redact: Callable[[bytes], bytes] = bytes

    def put_text(self, data: bytes) -> str:
        """Keep what people will read, such as output, with the operator's secrets replaced (`redact`)."""
        return self.put(self.redact(data))

    def put(self, data: bytes) -> str:
        """Keep bytes; return their SHA-256 in hex. `StorageError` if they cannot be kept."""
        return self.put_stream([data])[0]

    def put_stream(self, chunks: Iterable[bytes]) -> tuple[str, int]:
        """Keep what a stream gives, without holding it in memory; return SHA-256 in hex and size in bytes."""
        chunks = iter(chunks)
        first, second = next(chunks, b""), next(chunks, None)
        if second is None and self._path(known := hashlib.sha256(first).hexdigest()).exists():
            return known, len(first)
        if second is not None:
            chunks = chain([second], chunks)
        return self._write(chain([first], chunks))

    def _write(self, chunks: Iterable[bytes]) -> tuple[str, int]:
        sha256 = hashlib.sha256()
        size_bytes = 0
        draft = self.directory / f"{DRAFT}{secrets.token_hex(8)}"
        try:
            with self._storing():
                self.directory.mkdir(mode=0o700, exist_ok=True)
                out = FileIO(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")
            with out:
                for chunk in chunks:  # a fault of the source is not one of the storage
                    sha256.update(chunk)
                    size_bytes += len(chunk)
                    with self._storing():
                        _write_all(out, chunk)
            with self._storing():
                self._adopt(draft, sha256.hexdigest())
        finally:
            draft.unlink(missing_ok=True)
        return sha256.hexdigest(), size_bytes

    def get(self, sha256: str) -> bytes:
        """The bytes of a blob. `TamperError` if it is missing or is not what its name says."""
        with self._open(sha256) as stream:
            try:
                data = stream.read()
            except OSError as error:
                raise TamperError(f"blob {sha256}: cannot be read: {error.strerror}") from None
        if hashlib.sha256(data).hexdigest() != sha256:
            raise TamperError(f"blob {sha256}: its content is not what its name says")
        return data

    def check(self, sha256: str) -> None:
        """Like `get`, for a blob of any size: raises or returns nothing."""
        found = hashlib.sha256()
        with self._open(sha256) as stream:
            try:
                while chunk := stream.read(CHUNK_BYTES):
                    found.update(chunk)
            except OSError as error:
                raise TamperError(f"blob {sha256}: cannot be read: {error.strerror}") from None
        if found.hexdigest() != sha256:
            raise TamperError(f"blob {sha256}: its content is not what its name says")

    def names(self) -> Iterator[str]:
        """Every file that is named like a blob; drafts of an interrupted run and foreign files are none."""
        if self.directory.is_dir() and not self.directory.is_symlink():
            for path in sorted(self.directory.glob("??/*")):
                if _NAME.fullmatch(path.name) and path.name.startswith(path.parent.name):
                    yield path.name

    def mend(self, sealed: Container[str]) -> None:
        """Remove drafts and broken blobs that a writer which died left behind, for whoever is the only writer now.

        Those that are `sealed` in receipts are left alone. Of the rest, what stays is made durable: a later `put`
        takes it for kept.
        """
        with self._storing():
            for draft in self.directory.glob(f"{DRAFT}*"):
                draft.unlink()
            strays = {self._path(name) for name in self.names() if name not in sealed}
            for path in tuple(strays):
                try:
                    self.check(path.name)
                except TamperError:
                    path.unlink()
                    strays.remove(path)
            _sync(strays)

    def flush(self) -> None:
        """Return once every blob that was put before is durable: a receipt never outlives its evidence."""
        with self._flushing:
            with self._lock:
                unsynced, self._unsynced = self._unsynced, set()
            with self._storing():
                if self._lost:
                    raise OSError("an earlier sync failed, so what the disk holds is unknown")
                try:
                    _sync(unsynced)
                except OSError:
                    self._lost = True
                    raise

    @contextmanager
    def _storing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StorageError(
                f"{self.directory}: evidence cannot be kept: {error.strerror or error}"
            ) from error

    def _adopt(self, draft: Path, sha256: str) -> None:
        path = self._path(sha256)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        # Registered before it can be seen, so that whoever finds it there and then flushes does wait for it.
        with self._lock:
            if path.exists():
                return
            self._unsynced.add(path)
            draft.rename(path)

    def _open(self, sha256: str) -> BinaryIO:
        if not _NAME.fullmatch(sha256):
            raise TamperError(f"blob {sha256!r}: not a SHA-256")
        try:
            return open_regular(self._path(sha256))
        except FileNotFoundError:
            raise TamperError(f"blob {sha256}: missing") from None
        except OSError as error:
            raise TamperError(f"blob {sha256}: cannot be read: {error.strerror or error}") from None

    def _path(self, sha256: str) -> Path:
        return self.directory / sha256[:2] / sha256


def _write_all(out: FileIO, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[out.write(view) :]


def _sync(paths: set[Path]) -> None:
    if len(paths) > SYNC_ALL_ABOVE:
        os.sync()
        return
    for path in paths:
        sync_path(path)
    for directory in {path.parent for path in paths} | {path.parent.parent for path in paths}:
        sync_directory(directory)
