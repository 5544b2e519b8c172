"""A model that gives recorded answers again: to a request like the recorded one, and to no other."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import rfc8785

from boxeval.gateway.cassette import Cassette, Exchange
from boxeval.gateway.interface import Question, Relay, RequestError, ScriptError, Usage
from boxeval.spec.models import PlannedReplay

SHOWN = 120
"""Characters of a value in a message."""
EXPLAINED = 8
"""Requests of one route that are held against every recorded one; more would be work that a candidate can order."""
VOLATILE = (
    *("/model", "/metadata", "/client_metadata", "/user", "/prompt_cache_key", "/safety_identifier"),
    "/input/*/id",
)
"""What a client makes up for each request, or what names the model: a request may differ in these."""
_MISSING = object()


@dataclass(slots=True)
class _Recorded:
    """Answers to one request, in the order of their recording."""

    exchanges: list[Exchange] = field(default_factory=list)
    served: int = 0


class ReplayModel:
    """The answers of a cassette: the nth request of a kind gets the nth answer that such a one got."""

    def __init__(self, cassette: Cassette, planned: PlannedReplay) -> None:
        self._ignored = (*VOLATILE, *planned.ignore)
        self._lock = threading.Lock()
        self._unknown = 0
        self._exchanges = cassette.exchanges
        self._known: dict[tuple[str, bytes], _Recorded] = {}
        for exchange in cassette.exchanges:
            key = exchange.wire, self._key(exchange.request)
            self._known.setdefault(key, _Recorded()).exchanges.append(exchange)

    def serve(self, question: Question) -> Relay:
        """Raises `ScriptError` that shows how the request differs from the nearest recorded one."""
        key = question.wire.name, self._key(question.data)
        with self._lock:
            found = self._known.get(key)
            if found is None:
                self._unknown += 1
                told = (
                    self._difference(question)
                    if self._unknown <= EXPLAINED
                    else "nothing like it was recorded"
                )
                raise _unlike(told)
            if found.served == len(found.exchanges):
                raise _unlike(f"this request was recorded {found.served} times, and is sent once more")
            found.served += 1
            return ReplayedRelay(found.exchanges[found.served - 1])

    def count_tokens(self, question: Question) -> int:  # noqa: ARG002
        """Nobody knows offline."""
        raise RequestError(404, "invalid_request_error", "not_recorded", "tokens are not counted offline")

    def _key(self, data: Any) -> bytes:
        return canonical(without(data, self._ignored))

    def _difference(self, question: Question) -> str:
        candidates = [exchange for exchange in self._exchanges if exchange.wire == question.wire.name]
        if not candidates:
            return f"nothing was recorded over {question.wire.name}"
        sent = without(question.data, self._ignored)
        raw = canonical(sent)

        def nearness(exchange: Exchange) -> int:
            other = self._key(exchange.request)
            return next(
                (n for n, pair in enumerate(zip(raw, other, strict=False)) if pair[0] != pair[1]), len(other)
            )

        nearest = max(candidates, key=nearness)
        number = self._exchanges.index(nearest) + 1
        pointer, recorded, asked = first_difference(without(nearest.request, self._ignored), sent)
        before, now = _shown(recorded, asked), _shown(asked, recorded)
        return f"nearest is answer {number}; {pointer or '/'}: recorded {before}, sent {now}"


class ReplayedRelay:
    """A recorded answer. It costs nothing, and its tokens are counted as they were told."""

    withheld: tuple[str, ...] = ()

    def __init__(self, exchange: Exchange) -> None:
        self.status, self.content_type = exchange.status, exchange.content_type
        self._body = exchange.body

    def open(self) -> None:
        """It is here."""

    def chunks(self) -> Iterator[bytes]:
        """All of it."""
        yield self._body

    def cost_usd(self, usage: Usage) -> Decimal:  # noqa: ARG002
        """Nobody bills it again."""
        return Decimal(0)

    def close(self) -> None:
        """There is nothing to give up."""


def canonical(data: Any) -> bytes:
    """One form for equal JSON."""
    try:
        return rfc8785.dumps(data)
    except (rfc8785.CanonicalizationError, RecursionError):  # numbers beyond the canonical ones
        return json.dumps(data, sort_keys=True).encode()


def without(data: Any, pointers: Iterable[str]) -> Any:
    """A copy of JSON without what the pointers (RFC 6901) name; one that leads nowhere takes nothing out.

    Beyond the standard, `*` is every item of a list.
    """
    for pointer in pointers:
        data = _left_out(
            data, [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
        )
    return data


def _left_out(data: Any, steps: Sequence[str]) -> Any:
    if not steps:
        return None
    if isinstance(data, dict) and steps[0] in data:
        rest = {key: value for key, value in data.items() if key != steps[0]}
        return rest if len(steps) == 1 else {**rest, steps[0]: _left_out(data[steps[0]], steps[1:])}
    if isinstance(data, list) and steps[0] == "*":
        return [_left_out(item, steps[1:]) for item in data]
    if isinstance(data, list) and steps[0].isdecimal() and int(steps[0]) < len(data):
        place = int(steps[0])
        return [_left_out(item, steps[1:]) if n == place else item for n, item in enumerate(data)]
    return data


def first_difference(one: Any, other: Any, pointer: str = "") -> tuple[str, Any, Any]:
    """Where two JSON values first differ, and the values there."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            a, b = one.get(key, _MISSING), other.get(key, _MISSING)
            if a != b:
                return first_difference(a, b, f"{pointer}/{key}")
    if isinstance(one, list) and isinstance(other, list):
        for place in range(max(len(one), len(other))):
            a = one[place] if place < len(one) else _MISSING
            b = other[place] if place < len(other) else _MISSING
            if a != b:
                return first_difference(a, b, f"{pointer}/{place}")
    return pointer, one, other


def _shown(one: Any, other: Any) -> str:
    """The first of two values, of long texts the part where they begin to differ."""
    if one is _MISSING:
        return "nothing"
    start = 0
    if isinstance(one, str) and isinstance(other, str):
        same = next(
            (n for n, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), len(other)
        )
        start = max(0, same - SHOWN // 2)
        one = one[start:]
    text = json.dumps(one, ensure_ascii=False)
    before, after = "…" if start else "", "…" if len(text) > SHOWN else ""
    return f"{before}{text[:SHOWN]}{after}"


def _unlike(message: str) -> ScriptError:
    return ScriptError(400, "invalid_request_error", "not_recorded", message)
