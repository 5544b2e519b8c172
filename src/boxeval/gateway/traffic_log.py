"""The record of everything that went over one route: bounded JSON lines, without credentials."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from boxeval.gateway.redact import NONE, Redactor
from boxeval.gateway.sse import compact

FULL_BYTES = 32 * 1024 * 1024
"""Past this much, bodies are recorded by size and digest only."""
LIMIT_BYTES = FULL_BYTES + 1024 * 1024
"""Past this much, exchanges are only counted, in a last line `{"leftOut": n}`."""
KEPT_HEADERS = frozenset({"accept", "content-type", "user-agent"})
"""An allowlist, so that no header that might carry a credential is ever recorded."""

VERSION_HEADERS = frozenset({"anthropic-version", "anthropic-beta", "openai-beta"})
"""What chooses a version of a protocol, and goes to a provider as it came."""


class TrafficLog:
    """Grows line by line. `token` is replaced wherever it appears, and so is what `redact` knows.

    Used under its route's lock.
    """

    def __init__(self, token: str, redact: Redactor = NONE) -> None:
        self._token = token.encode()
        self._redact = redact
        self._lines: list[bytes] = []
        self._size = 0
        self._left_out = 0

    def add(self, entry: dict[str, Any], request: bytes, parsed: Any, answered: Any) -> None:
        """Record one exchange. `parsed` and `answered` are the bodies' JSON, None where there is none."""
        line, response = None, compact(answered)
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
        return self._redact(line.replace(self._token, b"TOKEN"))


def _digest(body: bytes) -> dict[str, Any]:
    return {"omitted": {"sizeBytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}}
