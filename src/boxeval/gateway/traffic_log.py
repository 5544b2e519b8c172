"""The record of everything that went over one route: bounded JSON lines, without credentials."""

from __future__ import annotations

import hashlib
import json
from typing import Any

FULL_BYTES = 32 * 1024 * 1024
"""Past this much, bodies are recorded by size and digest only."""
LIMIT_BYTES = FULL_BYTES + 1024 * 1024
"""Past this much, exchanges are only counted, in a last line `{"leftOut": n}`."""
KEPT_HEADERS = frozenset({"accept", "content-type", "user-agent"})
"""An allowlist, so that no header that might carry a credential is ever recorded."""


class TrafficLog:
    """Grows line by line. `secret` is replaced wherever it appears. Used under its route's lock."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()
        self._lines: list[bytes] = []
        self._size = 0
        self._left_out = 0

    def add(self, entry: dict[str, Any], request: bytes, response: bytes, parsed: Any, answered: Any) -> None:
        """Record one exchange. `parsed` and `answered` are the bodies' JSON, None where there is none."""
        line = None
        if self._size + len(request) + len(response) < FULL_BYTES:
            shown = (
                parsed if parsed is not None or not request else request.decode("utf-8", "backslashreplace")
            )
            line = self._line({**entry, "request": shown, "response": answered})
        if line is None or self._size + len(line) > FULL_BYTES:
            line = self._line({**entry, "request": _digest(request), "response": _digest(response)})
        if line is None or self._size + len(line) > LIMIT_BYTES:
            self._left_out += 1
            return
        self._lines.append(line)
        self._size += len(line)

    def take(self) -> bytes:
        """The whole log; it is empty afterwards."""
        if self._left_out:
            self._lines.append(json.dumps({"leftOut": self._left_out}).encode() + b"\n")
        taken = b"".join(self._lines)
        self._lines, self._size, self._left_out = [], 0, 0
        return taken

    def _line(self, entry: dict[str, Any]) -> bytes | None:
        try:
            line = json.dumps(entry, separators=(",", ":")).encode() + b"\n"
        except RecursionError:  # a body nested just below what the reader allows
            return None
        return line.replace(self._secret, b"TOKEN")


def _digest(body: bytes) -> dict[str, Any]:
    return {"omitted": {"sizeBytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}}
