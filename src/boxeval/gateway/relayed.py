"""An answer of a provider on its way to the candidate: passed on, metered, and accounted for exactly once."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator

from boxeval.gateway.interface import ModelError, Question, Relay, Usage
from boxeval.gateway.meter import Meter
from boxeval.gateway.purse import Spent
from boxeval.gateway.redact import Redactor
from boxeval.gateway.reply import STREAM, Cut

KEPT_BYTES = 8 * 1024 * 1024
"""Of one answer, for the record."""

Done = Callable[["Relayed", ModelError | None], None]


class Relayed:
    """Iterated by the connection; `abort` may come from any thread, and ends it. `done` is called once, at the end."""

    def __init__(self, relay: Relay, question: Question, redact: Redactor, done: Done) -> None:
        self._relay, self._question, self._redact, self._done = relay, question, redact, done
        self._meter: Meter | None = None
        self._began_ns = self.heard_ns = time.monotonic_ns()
        """When it began, and when the provider was last heard."""
        self.is_answered = False
        self._lock = threading.Lock()
        self._is_over = False
        self.size_bytes = 0
        self.kept = bytearray()

    @property
    def meter(self) -> Meter:
        """What was heard so far; made when the first byte comes, since only then the form of the answer is known."""
        if self._meter is None:
            self._meter = Meter(self._question.wire, self._relay.content_type.startswith(STREAM))
        return self._meter

    def spent(self, request_bytes: int) -> Spent:
        """What it has come to so far. Of an answer that was cut the cost is not known."""
        heard = self.meter.heard
        usage = heard.usage or Usage(0, 0)
        known = heard.is_whole and heard.usage is not None
        cost = self._relay.cost_usd(usage) if known else None
        return Spent(usage, cost, request_bytes + self.size_bytes, time.monotonic_ns() - self._began_ns)

    def __iter__(self) -> Iterator[bytes]:
        fault: ModelError | None = None
        try:
            yield from self._redact.stream(self._shown())
        except ModelError as error:
            fault = error
            raise Cut from None
        finally:
            self._end(fault)

    def abort(self) -> None:
        """Give it up. What came until now is accounted for, and nothing that comes later."""
        self._end(None)

    def _shown(self) -> Iterator[bytes]:
        question = self._question
        if question.wire.name == "chat" and question.asked.stream and not question.asked.include_usage:
            return _without_usage(self._heard())
        return self._heard()

    def _heard(self) -> Iterator[bytes]:
        for chunk in self._relay.chunks():
            self.heard_ns = time.monotonic_ns()
            self.meter.feed(chunk)
            self.size_bytes += len(chunk)
            if len(self.kept) + len(chunk) <= KEPT_BYTES:
                self.kept += chunk
            yield chunk
        self.meter.end()
        self.is_answered = True

    def _end(self, fault: ModelError | None) -> None:
        with self._lock:  # until it is accounted for: who aborts it counts on that
            if not self._is_over:
                self._is_over = True
                self._relay.close()
                self._done(self, fault)


def _without_usage(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Leave out the chunk that the gateway has asked for and the client has not."""
    rest = b""
    for piece in pieces:
        *events, rest = (rest + piece).split(b"\n\n")
        shown = [event + b"\n\n" for event in events if not _is_usage(event)]
        if shown:
            yield b"".join(shown)
    if rest:
        yield rest


def _is_usage(event: bytes) -> bool:
    if b'"usage"' not in event or not event.startswith(b"data:"):
        return False
    try:
        chunk = json.loads(event[5:])
    except (ValueError, RecursionError):
        return False
    return isinstance(chunk, dict) and chunk.get("choices") == [] and bool(chunk.get("usage"))
