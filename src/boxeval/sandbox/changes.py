"""The keeper's stream of changes, entry by entry, counted once more on this side."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from boxeval.errors import BoxError, EngineError, HostileTree
from boxeval.sandbox.keeper_frames import CollectAnswer, RawChange, Side, answer_of, change_of, parsed
from boxeval.spec.policy import CollectCaps
from boxeval.spec.trial import EntryKind


class ContentSink(Protocol):
    """Takes the content of changed files, piece by piece."""

    def __call__(self, pieces: Iterator[bytes]) -> str:
        """Read all pieces to the end; return the SHA-256 of the whole."""


@dataclass(frozen=True, slots=True)
class OldContent:
    """How much of what changed files held before is wanted: of one file, and of all together."""

    file_bytes: int = 0
    all_bytes: int = 0


NO_OLD_CONTENT = OldContent()


@dataclass(frozen=True, slots=True)
class Told:
    """One change, the digest of a regular file's content, and what it held before if that was sent."""

    change: RawChange
    sha256: str | None
    old: bytes | None


class ChangeStream:
    """Iterate once, to the end. `receive` gives the next frame or raises BoxError.

    Raises HostileTree if the keeper says that the tree breaks a cap, EngineError if it could not read it, and
    BoxError if what it sends breaks the caps or its own rules: then the keeper is of no further use.
    """

    def __init__(
        self,
        receive: Callable[[], tuple[bytes, bytes]],
        caps: CollectCaps,
        old: OldContent,
        sink: ContentSink,
    ) -> None:
        self._receive, self._caps, self._old, self._sink = receive, caps, old, sink
        self._bytes = self._old_bytes = 0
        self._frame = (b"", b"")
        self.repositories: tuple[bytes, ...] = ()
        """At the end: changed directories below the top that are repositories of their own."""

    def __iter__(self) -> Iterator[Told]:
        seen: set[bytes] = set()  # digests, since paths may be long
        self._next()
        while self._frame[0] == b"E":
            change = change_of(self._frame[1], self._caps)
            name = hashlib.blake2b(change.path, digest_size=16).digest()
            if name in seen:
                raise BoxError("the keeper told of one path twice")
            seen.add(name)
            if len(seen) > self._caps.members:
                raise BoxError(f"the keeper sent more than {self._caps.members} entries")
            self._next()
            sha256 = self._content(change.new)
            yield Told(change, sha256, self._earlier(change.old))
        self._end()

    def _content(self, new: Side | None) -> str | None:
        if new is None or new.kind is not EntryKind.FILE:
            return None
        return self._sink(self._counted(self._pieces(b"D", new.size_bytes)))

    def _counted(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            self._bytes += len(piece)
            if self._bytes > self._caps.bytes:
                raise BoxError(f"the keeper sent more than {self._caps.bytes} bytes")
            yield piece

    def _earlier(self, old: Side | None) -> bytes | None:
        if old is None or old.kind is not EntryKind.FILE:
            return None
        if self._frame[0] != b"B":
            return b"" if old.size_bytes == 0 else None
        self._old_bytes += old.size_bytes
        if old.size_bytes > self._old.file_bytes or self._old_bytes > self._old.all_bytes:
            raise BoxError("the keeper sent more of the fixture than was asked for")
        data = b"".join(self._pieces(b"B", old.size_bytes))
        if hashlib.sha256(data).hexdigest() != old.sha256:
            raise BoxError("the keeper sent a fixture's file that is not what its digest says")
        return data

    def _pieces(self, kind: bytes, size: int) -> Iterator[bytes]:
        """Exactly `size` bytes, in frames of one kind."""
        while self._frame[0] == kind:
            piece = self._frame[1]
            size -= len(piece)
            if not piece or size < 0:
                raise BoxError("the keeper sent content that does not fit its size")
            yield piece
            self._next()
        if size:
            self._end()
            raise BoxError("the keeper sent content that does not fit its size")

    def _end(self) -> None:
        answer = answer_of(*self._frame)
        if "cap" in answer:
            raise HostileTree(str(answer["cap"]))
        if "error" in answer:
            raise EngineError(f"keeper: collect: {answer['error']}")
        self.repositories = parsed(CollectAnswer, self._frame[1]).repositories

    def _next(self) -> None:
        self._frame = self._receive()
