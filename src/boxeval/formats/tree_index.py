"""A fixture's tree as a sorted, bounded list, and its digest."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

from boxeval.errors import FixtureError
from boxeval.formats.paths import bounds_fault
from boxeval.formats.place import show
from boxeval.spec.tree import FixtureEntry
from boxeval.spec.trial import EntryKind

MAX_MEMBERS = 200_000
IMPLIED_MODE = 0o755
_MAX_HOPS = 40
"""As in Linux: a path that goes through more symlinks than this is ELOOP, so it leads nowhere."""


@dataclass(frozen=True, slots=True)
class Fixture:
    """A workspace's files, read once and described. `entries` reads them again, for a box.

    An entry's `open` is good until the iterator is asked for the next one; its reader raises `FixtureError`
    if the content is not what `digest` was taken over.
    """

    digest: str
    entries: Callable[[], Iterator[FixtureEntry]]
    size_bytes: int
    members: int


@dataclass(frozen=True, slots=True)
class Item:
    """A tree entry whose content was read: `sha256` (hex) is of a file's bytes."""

    path: bytes
    kind: EntryKind
    mode: int
    size_bytes: int = 0
    link: bytes = b""
    sha256: str = ""


@dataclass(slots=True)
class TreeIndex:
    """Collects items under caps. `place` begins every message; `size_limit` is in bytes."""

    place: str
    size_limit: int
    items: dict[bytes, Item] = field(default_factory=dict)
    size_bytes: int = 0
    advice: str = "leave files out with `workspace.excludes`, or raise `workspace.sizeLimit`"

    def refuse(self, path: bytes, reason: str) -> FixtureError:
        """The error that names this place and an entry of it."""
        return FixtureError(f"{self.place}: {show(path.decode('utf-8', 'backslashreplace'))} {reason}")

    def add(self, item: Item) -> None:
        """Take an entry. Raises `FixtureError` for a doubled path or past a cap."""
        if fault := bounds_fault(item.path):
            raise self.refuse(item.path, fault)
        if item.path in self.items:
            raise self.refuse(item.path, "is there twice")
        self.items[item.path] = item
        if len(self.items) > MAX_MEMBERS:
            raise FixtureError(
                f"{self.place}: has more than {MAX_MEMBERS} entries, the most that a fixture may have"
            )

    def count(self, size_bytes: int) -> None:
        """Take content into account before it is read."""
        self.size_bytes += size_bytes
        if self.size_bytes > self.size_limit:
            raise self.too_large()

    def too_large(self) -> FixtureError:
        """The error of the size cap."""
        return FixtureError(f"{self.place}: is larger than {self.size_limit} bytes; {self.advice}")

    def add_parents(self) -> None:
        """Add the directories that entries imply. Raises `FixtureError` for an entry below anything else."""
        for path in list(self.items):
            while b"/" in path:
                path = path.rpartition(b"/")[0]
                parent = self.items.get(path)
                if parent is None:
                    self.add(Item(path, EntryKind.DIRECTORY, IMPLIED_MODE))
                elif parent.kind is EntryKind.DIRECTORY:
                    break
                else:
                    raise self.refuse(path, f"is a {parent.kind} and has entries below it")

    def check_links(self) -> None:
        """Raise `FixtureError` for a symlink that leads out of the tree, on its own or through others."""
        links = {item.path: item.link for item in self.items.values() if item.kind is EntryKind.SYMLINK}
        for path, target in links.items():
            if leads_out(path, links):
                shown = show(target.decode("utf-8", "backslashreplace"))
                raise self.refuse(path, f"is a symlink that leads out of the tree, to {shown}")

    def sorted(self) -> list[Item]:
        """Items by path; a parent sorts before what is in it."""
        return [self.items[path] for path in sorted(self.items)]

    def digest(self) -> str:
        """SHA-256 (hex) over all items, as `boxeval.spec.tree.FixtureEntry` lays down."""
        total = hashlib.sha256()
        for item in self.sorted():
            about = item.sha256.encode() if item.kind is EntryKind.FILE else item.link
            total.update(b"\0".join((item.kind.encode(), item.path, b"%04o" % item.mode, about)) + b"\n")
        return total.hexdigest()


def leads_out(path: bytes, links: Mapping[bytes, bytes]) -> bool:
    """Whether following `path` through the tree's own symlinks ever goes above the tree's root.

    Followed part by part, as the kernel does: `l/..` is the parent of where `l` points, not of `l`.
    """
    ahead = path.split(b"/")[::-1]
    at: list[bytes] = []
    hops = 0
    while ahead:
        part = ahead.pop()
        if part in (b"", b"."):
            continue
        if part == b"..":
            if not at:
                return True
            at.pop()
            continue
        at.append(part)
        target = links.get(b"/".join(at))
        if target is None:
            continue
        hops += 1
        if target.startswith(b"/"):
            return True
        if hops > _MAX_HOPS:
            return False
        at.pop()
        ahead.extend(target.split(b"/")[::-1])
    return False


class CheckedReader(io.RawIOBase):
    """Reads a file and raises `FixtureError` as soon as its bytes cannot be those of `item`."""

    def __init__(self, stream: io.RawIOBase | io.FileIO, item: Item, place: str) -> None:
        self._stream = stream
        self._item = item
        self._place = place
        self._left = item.size_bytes
        self._hash = hashlib.sha256()

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: object) -> int:
        """Fill the buffer; 0 at the end."""
        view = memoryview(buffer)  # type: ignore[arg-type]
        size = self._stream.readinto(view) or 0
        self._hash.update(view[:size])
        self._left -= size
        if self._left < 0 or (size == 0 and self._left) or (not self._left and self._changed()):
            name = show(self._item.path.decode("utf-8", "backslashreplace"))
            raise FixtureError(
                f"{self._place}: {name} changed while it was read; run again when nothing writes it"
            )
        return size

    def close(self) -> None:
        """Close the file below."""
        self._stream.close()
        super().close()

    def _changed(self) -> bool:
        return self._hash.hexdigest() != self._item.sha256


def entry(item: Item, opener: Callable[[Item], BinaryIO] | None) -> FixtureEntry:
    """An item for a box. `opener` gives a file's content."""
    content = None
    if item.kind is EntryKind.FILE and opener is not None:
        content = lambda: opener(item)  # noqa: E731
    return FixtureEntry(item.path, item.kind, item.mode, item.size_bytes, item.link, content)
