"""Server-sent events, written and read (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""

from __future__ import annotations

import json
from typing import Any


def compact(value: Any) -> bytes:
    """JSON without spaces."""
    return json.dumps(value, separators=(",", ":")).encode()


def event(data: Any, name: str | None = None) -> bytes:
    """One whole event with JSON as its data."""
    head = b"" if name is None else b"event: " + name.encode() + b"\n"
    return head + b"data: " + compact(data) + b"\n\n"
