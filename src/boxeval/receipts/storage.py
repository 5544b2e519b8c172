"""Files: a crash leaves a whole one or none, and what is read is never a link or a FIFO."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path
from typing import BinaryIO

PIECE_BYTES = 1024 * 1024
DRAFT = ".tmp-"
"""How the name of a half-written file begins."""


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading. Anything else in its place, say a symlink or FIFO, is an `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"not a regular file: {path}")
    return os.fdopen(descriptor, "rb")


def read_regular(path: Path, limit: int) -> bytes:
    """The content of a regular file of at most `limit` bytes, else `OSError`."""
    data = bytearray()
    with open_regular(path) as stream:
        while piece := stream.read(PIECE_BYTES):  # asked for at once, the whole limit would be allocated
            data += piece
            if len(data) > limit:
                raise OSError(f"larger than {limit} bytes: {path}")
    return bytes(data)


def write_new(path: Path, data: bytes) -> None:
    """Write a file that must not exist yet, for its owner alone, durable on return."""
    _write(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), data)
    sync_directory(path.parent)


def publish(path: Path, data: bytes) -> None:
    """Like `write_new`, and the file appears whole or not at all."""
    draft = path.with_name(f"{DRAFT}{secrets.token_hex(8)}")
    try:
        _write(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), data)
        path.hardlink_to(draft)
    finally:
        draft.unlink(missing_ok=True)
    sync_directory(path.parent)


def replace(path: Path, data: bytes) -> None:
    """Write or replace a file in one step, for its owner alone, durable on return."""
    draft = path.with_name(f"{DRAFT}{secrets.token_hex(8)}")
    try:
        _write(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), data)
        draft.rename(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make names that were created or renamed in a directory durable."""
    sync_path(path, os.O_DIRECTORY)


def sync_path(path: Path, flags: int = 0) -> None:
    """Make a file's or directory's content durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write(descriptor: int, data: bytes) -> None:
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
