"""Reads a directory of the host as a fixture. No symlink is followed, whoever swaps one in meanwhile."""

from __future__ import annotations

import hashlib
import io
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from boxeval.errors import FixtureError
from boxeval.formats.paths import MAX_DEPTH
from boxeval.formats.patterns import matcher
from boxeval.formats.tree_index import CheckedReader, Fixture, Item, TreeIndex, entry
from boxeval.spec.tree import FixtureEntry
from boxeval.spec.trial import EntryKind

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHUNK = 1024 * 1024
_SPECIAL: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def read_directory(root: Path, excludes: tuple[str, ...], size_limit: int, place: str) -> Fixture:
    """Everything below `root` that `excludes` leave. Raises `FixtureError` naming `place` and the entry."""
    index = index_directory(root, excludes, TreeIndex(place, size_limit))
    items = index.sorted()

    def entries() -> Iterator[FixtureEntry]:
        return (entry(item, lambda item: open_below(root, item, place)) for item in items)

    return Fixture(index.digest(), entries, index.size_bytes, len(items))


def index_directory(root: Path, excludes: tuple[str, ...], index: TreeIndex) -> TreeIndex:
    """Put everything below `root` into an index. Raises `FixtureError`."""
    place = index.place
    try:
        descriptor = os.open(root, _DIRECTORY)
    except OSError as error:
        raise FixtureError(f"{place}: cannot be read as a directory: {error.strerror}") from None
    try:
        _Walk(index, excludes).into(descriptor, b"", 1)
    finally:
        os.close(descriptor)
    index.check_links()
    return index


class _Walk:
    def __init__(self, index: TreeIndex, excludes: tuple[str, ...]) -> None:
        self.index = index
        self.excluded = matcher(excludes) if excludes else None

    def into(self, directory: int, prefix: bytes, depth: int) -> None:
        for name in sorted(os.fsencode(name) for name in os.listdir(directory)):
            path = prefix + name
            try:
                self.take(directory, name, path, depth)
            except OSError as error:
                raise self.index.refuse(path, f"cannot be read: {error.strerror}") from None

    def take(self, directory: int, name: bytes, path: bytes, depth: int) -> None:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        kind, mode = status.st_mode, stat.S_IMODE(status.st_mode) & 0o777
        if self.leaves_out(path, stat.S_ISDIR(kind)):
            return
        if stat.S_ISDIR(kind):
            if depth > MAX_DEPTH:
                raise self.index.refuse(path, f"is deeper than {MAX_DEPTH} directories")
            self.index.add(Item(path, EntryKind.DIRECTORY, mode))
            inner = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
            try:
                self.into(inner, path + b"/", depth + 1)
            finally:
                os.close(inner)
        elif stat.S_ISREG(kind):
            self.index.add(self.file(directory, name, path))
        elif stat.S_ISLNK(kind):
            target = os.readlink(name, dir_fd=directory)
            self.index.add(Item(path, EntryKind.SYMLINK, 0o777, link=target))
        else:
            what = next((word for test, word in _SPECIAL if test(kind)), "a special file")
            raise self.index.refuse(path, f"is {what}; leave it out with `workspace.excludes`")

    def leaves_out(self, path: bytes, is_directory: bool) -> bool:
        if self.excluded is None:
            return False
        name = os.fsdecode(path).replace("\n", "\0") + ("/" if is_directory else "")
        return self.excluded.match_file(name)

    def file(self, directory: int, name: bytes, path: bytes) -> Item:
        descriptor = os.open(name, _FILE, dir_fd=directory)
        with os.fdopen(descriptor, "rb", buffering=0) as stream:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise self.index.refuse(path, "changed while it was read")
            if self.index.size_bytes + status.st_size > self.index.size_limit:
                raise self.index.too_large()
            digest, size = hashlib.sha256(), 0
            while chunk := stream.read(_CHUNK):
                self.index.count(len(chunk))
                digest.update(chunk)
                size += len(chunk)
        mode = stat.S_IMODE(status.st_mode) & 0o777
        return Item(path, EntryKind.FILE, mode, size, sha256=digest.hexdigest())


def open_below(root: Path, item: Item, place: str) -> BinaryIO:
    """Opens part by part, so that a directory that became a symlink is an error and not a way out."""
    *parents, name = item.path.split(b"/")
    directory = -1
    try:
        directory = os.open(root, _DIRECTORY)
        for parent in parents:
            inner = os.open(parent, _DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
            os.close(directory)
            directory = inner
        stream = os.fdopen(os.open(name, _FILE, dir_fd=directory), "rb", buffering=0)
    except OSError as error:
        raise TreeIndex(place, 0).refuse(item.path, f"cannot be read any more: {error.strerror}") from None
    finally:
        if directory >= 0:
            os.close(directory)
    return cast(BinaryIO, io.BufferedReader(CheckedReader(cast(io.RawIOBase, stream), item, place), _CHUNK))
