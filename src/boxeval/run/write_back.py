"""`workspace.writeBack`: what a passed trial changed goes into the operator's own directory, and nothing else does.

This is the one place where a candidate's bytes reach the host's file system, because the suite asked for
it. Every step is by directory descriptors and names, so no link is followed. A path is changed only if it
is still what the fixture was made of, and one that is as it should be already is done, so that it can be done again
after a crash; `.git`, special files and links that could lead out are left out.
What was left out is told.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from boxeval.receipts.blobs import BlobStore
from boxeval.rules.patch import is_refused
from boxeval.rules.paths import is_git_internal, raw_name
from boxeval.spec.trial import Change, Collected, EntryKind, Trial

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
CHUNK = 1 << 20


class _LeftOut(Exception):
    """A change is not applied; the text says why."""


def write_back(root: Path, trial: Trial, blobs: BlobStore) -> tuple[str, ...]:
    """Apply the accepted changes of a passed trial below `root`; return a line for each that was left out."""
    enforced = trial.observations.enforced
    accepted = (enforced and enforced.kept) or trial.observations.collected or Collected()
    gone = [change for change in reversed(accepted.changes) if change.kind is None]
    made = [change for change in accepted.changes if change.kind is not None]
    told = []
    for change in (*gone, *made):
        try:
            with _parent(root, raw_name(change.path)) as (directory, name):
                _apply(directory, name, change, blobs)
        except (_LeftOut, OSError) as error:
            if change.kind is None and isinstance(error, FileNotFoundError):
                continue  # the directory that it was in is gone already
            told.append(f"{change.path}: {getattr(error, 'strerror', None) or error}")
    return tuple(told)


@contextmanager
def _parent(root: Path, path: bytes) -> Iterator[tuple[int, bytes]]:
    """The directory that holds `path`, open, and the name in it."""
    *folders, name = path.split(b"/")
    if is_git_internal(path) or is_refused(path, link=False):
        raise _LeftOut("Git's own files are not written back, by whatever name a file system knows them")
    if any(part in (b"", b".", b"..") for part in (*folders, name)):
        raise _LeftOut("is no plain path")
    directory = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            inner = os.open(folder, DIRECTORY, dir_fd=directory)
            os.close(directory)
            directory = inner
        yield directory, name
    finally:
        os.close(directory)


def _apply(directory: int, name: bytes, change: Change, blobs: BlobStore) -> None:
    if _is_done(directory, name, change):
        return
    if not _is_as_before(directory, name, change):
        raise _LeftOut("is not what it was when the fixture was read")
    if change.kind is None:
        _remove(directory, name, change.was)
    elif change.kind is EntryKind.FILE:
        _write(directory, name, change, blobs)
    elif change.kind is EntryKind.DIRECTORY:
        if change.was is not EntryKind.DIRECTORY:
            _remove(directory, name, change.was)
            os.mkdir(name, dir_fd=directory)
        os.chmod(name, (change.mode or 0o755) & 0o777, dir_fd=directory)
    elif change.kind is EntryKind.SYMLINK:
        target = raw_name(change.link or "")
        if target.startswith(b"/") or b".." in target.split(b"/"):
            raise _LeftOut("is a link that could lead out")
        _remove(directory, name, change.was)
        os.symlink(target, name, dir_fd=directory)
    else:
        raise _LeftOut(f"is a {change.kind}")


def _is_as_before(directory: int, name: bytes, change: Change) -> bool:
    return _is(directory, name, change.was, change.was_sha256, change.was_link)


def _is_done(directory: int, name: bytes, change: Change) -> bool:
    try:
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode & 0o777
    except FileNotFoundError:
        return change.kind is None
    has_mode = change.kind is EntryKind.SYMLINK or change.mode is None or mode == change.mode & 0o777
    return has_mode and _is(directory, name, change.kind, change.sha256, change.link)


def _is(directory: int, name: bytes, kind: EntryKind | None, sha256: str | None, link: str | None) -> bool:
    """Whether what has a name now is of a kind and has a content or target."""
    try:
        info = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return kind is None
    if kind is EntryKind.FILE:
        return stat.S_ISREG(info.st_mode) and _sha256(directory, name) == sha256
    if kind is EntryKind.SYMLINK:
        return stat.S_ISLNK(info.st_mode) and os.readlink(name, dir_fd=directory) == raw_name(link or "")
    return kind is EntryKind.DIRECTORY and stat.S_ISDIR(info.st_mode)


def _sha256(directory: int, name: bytes) -> str:
    digest = hashlib.sha256()
    with open(os.open(name, FILE, dir_fd=directory), "rb") as source:  # noqa: PTH123  a descriptor
        while piece := source.read(CHUNK):
            digest.update(piece)
    return digest.hexdigest()


def _remove(directory: int, name: bytes, was: EntryKind | None) -> None:
    if was is EntryKind.DIRECTORY:
        os.rmdir(name, dir_fd=directory)
    elif was is not None:
        os.unlink(name, dir_fd=directory)


def _write(directory: int, name: bytes, change: Change, blobs: BlobStore) -> None:
    """Write beside the file and rename over it, so that it is never half written."""
    draft = b".boxeval-" + secrets.token_hex(8).encode()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(draft, flags, 0o600, dir_fd=directory), "wb") as sink:  # noqa: PTH123  a descriptor
            sink.write(blobs.get(change.sha256 or ""))
            os.fchmod(sink.fileno(), (change.mode or 0o644) & 0o777)
        if change.was is EntryKind.DIRECTORY:
            os.rmdir(name, dir_fd=directory)
        os.rename(draft, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=directory)
        raise
