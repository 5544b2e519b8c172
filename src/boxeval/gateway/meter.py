"""Counts what a provider's answer says of itself while its bytes pass by, in whatever pieces they come (S21)."""

from __future__ import annotations

import json

from boxeval.gateway.interface import Heard, Wire
from boxeval.gateway.sse import EventReader

BODY_BYTES = 64 * 1024 * 1024
"""Of an answer that is no stream. A longer one is passed on without being understood."""


class Meter:
    """Fed with the bytes of one answer; `heard` is up to date after each piece, and final after `end`."""

    def __init__(self, wire: Wire, is_stream: bool) -> None:
        self.heard = Heard()
        self._wire = wire
        self._events = EventReader() if is_stream else None
        self._body = bytearray()

    def feed(self, piece: bytes) -> None:
        """Take the next bytes."""
        if self._events is None:
            if len(self._body) <= BODY_BYTES:
                self._body += piece
            return
        for data in self._events.feed(piece):
            self._hear(data)

    def end(self) -> None:
        """No more will come: the answer was not cut."""
        if self._events is None and len(self._body) <= BODY_BYTES:
            self._hear(bytes(self._body))

    def _hear(self, data: bytes) -> None:
        if data == b"[DONE]":
            self.heard.is_whole = True
            return
        try:
            parsed = json.loads(data)
        except (ValueError, RecursionError):
            return
        if isinstance(parsed, dict):
            self._wire.hear(parsed, self.heard)
