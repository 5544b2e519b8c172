"""A request as it came over HTTP, and how an answer becomes the bytes of a reply."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from boxeval.gateway.endpoints import wire_of
from boxeval.gateway.interface import Answer, Question, RequestError, WireError
from boxeval.gateway.sse import compact

STREAM = "text/event-stream"
JSON = "application/json"
FINAL = (("x-should-retry", "false"),)
"""Read by the clients that providers give out: without it they repeat a 429 until the trial's time is over."""
CHALLENGE = (("Proxy-Authenticate", 'Basic realm="boxeval"'),)
_GARBLED = b'data: {"garbled": \n\n'


class Cut(Exception):
    """The reply ends here, and nothing says that it does: the connection is closed."""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request. `endpoint` is the path after the route's base, e.g. `/chat/completions`."""

    method: str
    endpoint: str
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Reply:
    """One HTTP response, whose `parts` are sent one by one. `size_bytes` is of all parts, where it is known."""

    status: int
    parts: Iterable[bytes]
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    size_bytes: int | None = None


def json_reply(status: int, body: dict[str, Any], headers: tuple[tuple[str, str], ...] = ()) -> Reply:
    """A whole body."""
    data = compact(body)
    return Reply(status, (data,), headers=headers, size_bytes=len(data))


def error_reply(fault: WireError, request: Request) -> Reply:
    """The reply that tells a fault in the shape of the protocol that was spoken."""
    wire = wire_of(request.endpoint, request.headers)
    headers = FINAL if fault.is_final else ()
    return json_reply(
        fault.status, wire.error(fault), (*headers, *(CHALLENGE if fault.status == 407 else ()))
    )


def answer_reply(answer: Answer, question: Question, body: dict[str, Any], created: int) -> Reply:
    """An answer in its protocol, with the faults that a script asks for."""
    if question.asked.stream:
        events = tuple(question.wire.events(answer, question.asked, created))
        return Reply(200, _spoiled(events, answer), STREAM, size_bytes=sum(map(len, events)))
    data = compact(body)
    if answer.garble_after is not None:
        data = data[: len(data) // 2]
    sent = _half(data) if answer.cut_after is not None else (data,)
    return Reply(200, sent, size_bytes=len(data))


def gone() -> RequestError:
    """For a route whose trial has ended, or has no turn now."""
    return RequestError(410, "invalid_request_error", "route_closed", "this trial has ended")


def _spoiled(events: tuple[bytes, ...], answer: Answer) -> Iterable[bytes]:
    if answer.cut_after is None and answer.garble_after is None:
        return events
    return _faulty(events, answer)


def _faulty(events: tuple[bytes, ...], answer: Answer) -> Iterator[bytes]:
    for number, event in enumerate(events):
        if number == answer.cut_after:
            raise Cut
        yield _GARBLED if number == answer.garble_after else event


def _half(data: bytes) -> Iterator[bytes]:
    yield data[: len(data) // 2]
    raise Cut
