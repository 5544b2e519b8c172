"""Server-sent events, written and read (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

EVENT_BYTES = 16 * 1024 * 1024
"""Of one event. What is longer is not read; it is passed on all the same."""


def compact(value: Any) -> bytes:
    """JSON without spaces."""
    return json.dumps(value, separators=(",", ":")).encode()


def event(data: Any, name: str | None = None) -> bytes:
    """One whole event with JSON as its data."""
    head = b"" if name is None else b"event: " + name.encode() + b"\n"
    return head + b"data: " + compact(data) + b"\n\n"


class EventReader:
    """Takes bytes in any pieces and gives the data of each event that is whole."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Data of the events that end in this piece, lines of one event joined by a newline."""
        self._rest += piece
        lines: list[bytearray] = []
        if b"\n" in piece:
            *lines, self._rest = self._rest.split(b"\n")
        for raw in lines:
            line = bytes(raw.removesuffix(b"\r"))
            if line:
                self._line(line)
            elif self._data:
                yield b"\n".join(self._data)
                self._data, self._size = [], 0
        if len(self._rest) > EVENT_BYTES:
            self._rest = bytearray()

    def _line(self, line: bytes) -> None:
        if line.startswith(b"data:"):
            self._size += len(line)
            if self._size <= EVENT_BYTES:
                self._data.append(line[5:].removeprefix(b" "))
