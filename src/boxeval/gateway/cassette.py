"""Cassettes: what a real model said, recorded once, to be given again without a network.

A cassette is a text file of JSON lines: a head `{format, recorded}`, then one line for each answer `{wire, model,
request, status, contentType, body}`. Nothing of a header is in it, and secrets are replaced.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from boxeval.errors import StorageError, UsageError
from boxeval.gateway.interface import Question, Relay
from boxeval.gateway.redact import Redactor
from boxeval.spec.models import PlannedReplay

FORMAT = "boxeval.cassette/1"
MAX_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Exchange:
    """One recorded request and its answer."""

    wire: str
    model: str
    request: Mapping[str, Any]
    status: int
    content_type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Cassette:
    """A cassette that was read. `sha256` is over the file."""

    sha256: str
    exchanges: tuple[Exchange, ...]

    @property
    def model(self) -> str:
        """The name that was asked for, so that an agent behaves as it did."""
        return self.exchanges[0].model

    def planned(self, ignore: tuple[str, ...]) -> PlannedReplay:
        """A model that replays it."""
        wires = tuple(sorted({exchange.wire for exchange in self.exchanges}))
        return PlannedReplay(cassette=self.sha256, model=self.model, wires=wires, ignore=ignore)


class Recorder:
    """Writes a new cassette while a run goes on; several threads may add to it."""

    def __init__(self, path: Path, redact: Redactor) -> None:
        self._redact, self._lock, self._path = redact, threading.Lock(), path
        self._fault: str | None = None
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            raise UsageError(f"--record {path}: is there already") from None
        except OSError as error:
            raise StorageError(f"--record {path}: cannot be written: {error.strerror}") from error
        self._file = os.fdopen(descriptor, "wb")
        self._write({"format": FORMAT, "recorded": datetime.now(UTC).strftime("%Y-%m-%d")})

    def add(self, question: Question, relay: Relay, body: bytes) -> None:
        """One whole answer. If it cannot be written the run goes on, and `close` tells."""
        self._write(
            {
                "wire": question.wire.name,
                "model": question.asked.model,
                "request": dict(question.data),
                "status": relay.status,
                "contentType": relay.content_type,
                "body": body.decode("utf-8", "replace"),
            }
        )

    def close(self) -> None:
        """No more comes. `StorageError` if not all of it could be written."""
        with self._lock:
            with suppress(OSError):
                self._file.close()
            if self._fault:
                raise StorageError(f"--record {self._path}: cannot be written: {self._fault}")

    def _write(self, line: dict[str, Any]) -> None:
        data = self._redact(json.dumps(line, separators=(",", ":")).encode()) + b"\n"
        with self._lock:
            if self._file.closed or self._fault:
                return
            try:
                self._file.write(data)
                self._file.flush()
            except OSError as error:
                self._fault = error.strerror or str(error)


def read_cassette(path: Path) -> Cassette:
    """Raises `UsageError` with the line that is wrong."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cassette {path}: cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise UsageError(f"cassette {path}: is larger than {MAX_BYTES} bytes")
    lines = data.splitlines()
    try:
        head = json.loads(lines[0]) if lines else None
    except (ValueError, RecursionError):
        head = None
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise UsageError(
            f"cassette {path}: is none of format {FORMAT}; record one with `boxeval run --record`"
        )
    exchanges = tuple(
        _exchange(f"cassette {path}: line {n}", line) for n, line in enumerate(lines[1:], start=2)
    )
    if not exchanges:
        raise UsageError(f"cassette {path}: has no answer in it")
    return Cassette(hashlib.sha256(data).hexdigest(), exchanges)


def _exchange(place: str, line: bytes) -> Exchange:
    try:
        told = json.loads(line)
        exchange = Exchange(
            told["wire"],
            told["model"],
            told["request"],
            told["status"],
            told["contentType"],
            told["body"].encode(),
        )
        good = isinstance(exchange.request, dict) and isinstance(exchange.status, int)
        good &= all(isinstance(text, str) for text in (exchange.wire, exchange.model, exchange.content_type))
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        good = False
    if not good:
        raise UsageError(f"{place}: is no recorded answer")
    return exchange
