"""Reads a tar archive as a fixture without extracting it: nothing of it is ever made on the host.

`tarsafe` refuses what it knows first; the checks here refuse the rest. tests/hostile has an archive for each,
and for the advisories on Python's own extraction filters: CVE-2024-12718, CVE-2025-4138, -4330, -4435, -4517.
"""

from __future__ import annotations

import bz2
import copy
import gzip
import hashlib
import io
import lzma
import os
import posixpath
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import tarsafe  # type: ignore[import-untyped]

from boxeval.errors import FixtureError
from boxeval.formats.archive_headers import header_fault
from boxeval.formats.paths import normal
from boxeval.formats.patterns import matcher
from boxeval.formats.place import show
from boxeval.formats.tree_index import MAX_MEMBERS, CheckedReader, Fixture, Item, TreeIndex, entry
from boxeval.spec.tree import FixtureEntry
from boxeval.spec.trial import EntryKind

_CHUNK = 1024 * 1024
_XZ_MEMORY = 256 * 1024 * 1024
_HEADERS = 64 * 1024 * 1024
"""What an archive may unpack to beside twice the size limit: tar's own blocks."""
_NOT_TAR = {b"PK": "zip", b"\x28\xb5\x2f\xfd": "zstd", b"7z\xbc\xaf": "7z", b"Rar!": "rar"}
_BROKEN = (tarfile.TarError, tarsafe.TarSafeException, EOFError, ValueError, OverflowError, RecursionError)


def read_archive(path: Path, excludes: tuple[str, ...], size_limit: int, place: str) -> Fixture:
    """The tree of a tar archive, plain or packed by gzip, xz or bzip2. Raises `FixtureError`."""
    with _unpacked(path, size_limit, place) as archive:
        index, _ = _read(archive, excludes, size_limit, place)
    digest = index.digest()

    def entries() -> Iterator[FixtureEntry]:
        with _unpacked(path, size_limit, place) as archive:
            again, offsets = _read(archive, excludes, size_limit, place)
            if again.digest() != digest:
                raise FixtureError(f"{place}: changed while it was read; run again when nothing writes it")
            for item in again.sorted():
                yield entry(item, lambda item: _content(archive, offsets[item.path], item, place))

    return Fixture(digest, entries, index.size_bytes, len(index.items))


@contextmanager
def _unpacked(path: Path, size_limit: int, place: str) -> Iterator[IO[bytes]]:
    """The plain tar in a file without a name, so that what is checked is what is read."""
    cap = 2 * size_limit + _HEADERS
    with tempfile.TemporaryFile() as plain:
        try:
            with path.open("rb") as packed:
                size = 0
                for chunk in _chunks(packed, place):
                    size += len(chunk)
                    if size > cap:
                        raise TreeIndex(place, size_limit).too_large()
                    plain.write(chunk)
                plain.flush()
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise FixtureError(f"{place}: cannot be unpacked: {reason}") from None
        yield plain


def _chunks(packed: BinaryIO, place: str) -> Iterator[bytes]:
    head = packed.read(6)
    packed.seek(0)
    for magic, name in _NOT_TAR.items():
        if head.startswith(magic):
            raise FixtureError(
                f"{place}: is a {name} archive; only tar is read, plain or with gzip, xz or bzip2"
            )
    stream: Any = packed
    if head.startswith(b"\x1f\x8b"):
        stream = gzip.GzipFile(fileobj=packed)
    elif head.startswith(b"BZh"):
        stream = bz2.BZ2File(packed)
    elif head == b"\xfd7zXZ\0":
        yield from _xz(packed)
        return
    while chunk := stream.read(_CHUNK):
        yield chunk


def _xz(packed: BinaryIO) -> Iterator[bytes]:
    """`lzma.open` sets no bound on the dictionary that an archive may ask for; this does."""
    data = packed.read(_CHUNK)
    while data:
        stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
        while not stream.eof:
            yield stream.decompress(data, _CHUNK)
            if stream.needs_input and not stream.eof:
                data = packed.read(_CHUNK)
                if not data:
                    raise EOFError("the file ends in the middle")
            else:
                data = b""
        data = stream.unused_data.lstrip(b"\0") or packed.read(_CHUNK).lstrip(b"\0")


class _Checked(tarsafe.TarSafe):  # type: ignore[misc]
    """tarsafe over symlinks as they resolve: from the folder that they are in, not from the root."""

    # Python before 3.11.4 has no filters; nothing is extracted here in any case.
    extraction_filter = staticmethod(getattr(tarfile, "data_filter", lambda member, _path: member))

    def __iter__(self) -> Iterator[tarfile.TarInfo]:
        for number, member in enumerate(super().__iter__()):
            if number > MAX_MEMBERS:
                raise tarfile.ReadError(f"it has more than {MAX_MEMBERS} entries")
            if member.issym():
                member = copy.copy(member)
                member.linkname = posixpath.join(posixpath.dirname(member.name), member.linkname)
            yield member


def _read(
    archive: IO[bytes], excludes: tuple[str, ...], size_limit: int, place: str
) -> tuple[TreeIndex, dict[bytes, int]]:
    if fault := header_fault(archive.fileno()):
        raise FixtureError(f"{place}: {fault}")
    archive.seek(0)
    try:
        with _Checked.open(fileobj=archive, mode="r:", encoding="utf-8", errors="surrogateescape") as tar:
            tar.extractall("/nowhere", members=[])  # noqa: S202  checks every member, extracts none
            members = tar.getmembers()
    except _BROKEN as error:
        raise FixtureError(f"{place}: is refused: {show(str(error))}") from None
    return _Members(archive, TreeIndex(place, size_limit)).index(members, excludes)


class _Members:
    def __init__(self, archive: IO[bytes], index: TreeIndex) -> None:
        self.archive = archive
        self.size = archive.seek(0, io.SEEK_END)
        self.tree = index
        self.offsets: dict[bytes, int] = {}

    def index(
        self, members: list[tarfile.TarInfo], excludes: tuple[str, ...]
    ) -> tuple[TreeIndex, dict[bytes, int]]:
        for member in members:
            if path := self.path(member):
                self.tree.add(self.item(member, path))
        self.tree.add_parents()
        self.tree.check_links()
        if excludes:
            self.leave_out(excludes)
        return self.tree, self.offsets

    def path(self, member: tarfile.TarInfo) -> bytes:
        raw = member.name.encode("utf-8", "surrogateescape")
        if member.name.startswith("/"):
            raise self.tree.refuse(raw, "has an absolute path")
        if ".." in member.name.split("/"):
            raise self.tree.refuse(raw, "has `..` in its path")
        if "\0" in member.name:
            raise self.tree.refuse(raw, "has a NUL in its path")
        path = normal(member.name)
        if not path and not (member.isdir() and member.name):
            raise self.tree.refuse(raw, "has no name")
        return path.encode("utf-8", "surrogateescape")

    def item(self, member: tarfile.TarInfo, path: bytes) -> Item:
        mode = member.mode & 0o777
        if member.isdir():
            return Item(path, EntryKind.DIRECTORY, mode)
        if member.issym():
            target = member.linkname.encode("utf-8", "surrogateescape")
            if not target or b"\0" in target:
                raise self.tree.refuse(path, "is a symlink to nothing")
            return Item(path, EntryKind.SYMLINK, 0o777, link=target)
        sparse = member.issparse() or any(key.startswith("GNU.sparse") for key in member.pax_headers)
        for refused, what in (
            (member.islnk(), "a hard link; pack it with --hard-dereference"),
            (member.isfifo(), "a FIFO"),
            (member.isdev(), "a device"),
            (sparse, "a sparse file; pack it without --sparse"),
            (not member.isreg(), f"of the unknown type {member.type!r}"),
        ):
            if refused:
                raise self.tree.refuse(path, f"is {what}")
        return self.file(member, path, mode)

    def file(self, member: tarfile.TarInfo, path: bytes, mode: int) -> Item:
        start = member.offset_data
        if member.size < 0 or start < 0 or start + member.size > self.size:
            raise self.tree.refuse(path, "is cut short")
        self.tree.count(member.size)
        digest = hashlib.sha256()
        for offset in range(start, start + member.size, _CHUNK):
            size = min(_CHUNK, start + member.size - offset)
            digest.update(os.pread(self.archive.fileno(), size, offset))
        self.offsets[path] = start
        return Item(path, EntryKind.FILE, mode, member.size, sha256=digest.hexdigest())

    def leave_out(self, excludes: tuple[str, ...]) -> None:
        spec = matcher(excludes)
        for item in self.tree.sorted():
            name = os.fsdecode(item.path).replace("\n", "\0")
            parent = item.path.rpartition(b"/")[0]
            gone = parent and parent not in self.tree.items
            if gone or spec.match_file(f"{name}/" if item.kind is EntryKind.DIRECTORY else name):
                del self.tree.items[item.path]
                self.tree.size_bytes -= item.size_bytes


class _Slice(io.RawIOBase):
    """One member's bytes; a position of its own, so that readers do not disturb each other."""

    def __init__(self, descriptor: int, start: int, size: int) -> None:
        self._descriptor, self._at, self._end = descriptor, start, start + size

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        data = os.pread(self._descriptor, min(len(view), self._end - self._at), self._at)
        view[: len(data)] = data
        self._at += len(data)
        return len(data)


def _content(archive: IO[bytes], start: int, item: Item, place: str) -> BinaryIO:
    reader = CheckedReader(_Slice(archive.fileno(), start, item.size_bytes), item, place)
    return cast(BinaryIO, io.BufferedReader(reader, _CHUNK))
