"""Bounded copies of output: memory stays flat however much a box prints."""

from __future__ import annotations

import hashlib


class Bounded:
    """Keeps the first and the last `limit / 2` bytes of a stream; counts and hashes all of it."""

    def __init__(self, limit: int) -> None:
        self._half = max(limit // 2, 1)
        self._head = bytearray()
        self._tail = bytearray()
        self._digest = hashlib.sha256()
        self.size_bytes = 0

    def feed(self, data: bytes) -> None:
        """Take the next piece."""
        self.size_bytes += len(data)
        self._digest.update(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    @property
    def kept(self) -> bytes:
        """What is kept: head, then tail."""
        return bytes(self._head + self._tail[-self._half :])

    @property
    def sha256(self) -> str:
        """Digest over the whole stream."""
        return self._digest.hexdigest()

    @property
    def truncated(self) -> bool:
        """True if bytes in the middle were let go."""
        return self.size_bytes > len(self.kept)
