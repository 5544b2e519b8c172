"""Secrets out of bytes: in a whole, and in a stream whose pieces may cut one in two (J1, P21)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

REDACTED = b"[redacted]"
SHORTEST = 6
"""A shorter value is not looked for: it would be found in everything."""


class Redactor:
    """Knows secrets by their values, as they are and as JSON writes them."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known: set[bytes] = set()
        for secret in secrets:
            if len(secret) >= SHORTEST:
                known |= {secret.encode(), json.dumps(secret)[1:-1].encode()}
        # Longest first, so that no part of one is left where another is a part of it.
        self._secrets = tuple(sorted(known, key=lambda secret: (-len(secret), secret)))

    def __call__(self, data: bytes) -> bytes:
        """The same bytes with every secret replaced."""
        for secret in self._secrets:
            data = data.replace(secret, REDACTED)
        return data

    def text(self, text: str) -> str:
        """The same for text."""
        return self(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def stream(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """The same for pieces. Held back is only what may be the beginning of a secret."""
        held = b""
        for piece in pieces:
            data = self(held + piece)
            cut = len(data) - self._begun(data)
            held = data[cut:]
            if cut:
                yield data[:cut]
        if held:
            yield held

    def _begun(self, data: bytes) -> int:
        """Length of the longest end of `data` that begins a secret."""
        longest = 0
        for secret in self._secrets:
            for size in range(min(len(secret) - 1, len(data)), longest, -1):
                if data.endswith(secret[:size]):
                    longest = size
                    break
        return longest


NONE = Redactor()
"""Where there is nothing to hide."""
