"""One trial's way to its model: what is asked is answered, counted and recorded, until it is closed."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from boxeval.gateway.endpoints import COUNT_TOKENS, MODELS, check_endpoint, check_key, wire_of
from boxeval.gateway.interface import Answer, Asked, Model, ModelError, RequestError, WireError
from boxeval.gateway.json_body import read_json
from boxeval.gateway.names import Names
from boxeval.gateway.sse import compact
from boxeval.gateway.tally import Tally
from boxeval.gateway.traffic_log import KEPT_HEADERS, TrafficLog
from boxeval.spec.trial import ModelTraffic

IN_FLIGHT = 8
"""Requests of one route whose bodies are being read or answered at the same time."""
REQUESTS = 10_000
REQUEST_BYTES = 1024 * 1024 * 1024
"""What one route takes in all. A candidate that floods the gateway must not starve the other trials."""
FINAL = (("x-should-retry", "false"),)
"""Read by the clients that providers give out: without it they repeat a 429 until the trial's time is over."""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request. `endpoint` is the path after the route's base, e.g. `/chat/completions`."""

    method: str
    endpoint: str
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Reply:
    """One HTTP response. Several `parts` are sent one by one, as a stream."""

    status: int
    parts: tuple[bytes, ...]
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RouteTraffic:
    """What went over a route. `traffic.log` is None until `log` (JSON lines) has become a blob."""

    traffic: ModelTraffic
    log: bytes


class RouteState:
    """The server's side of a route."""

    def __init__(self, token: str, names: Names, model: Model) -> None:
        self._names = names
        self._model = model
        self._lock = threading.Lock()
        self._log = TrafficLog(token)
        self._tally = Tally()
        self._opened_ns = time.monotonic_ns()
        self._asked = 0
        self._asked_bytes = 0
        self._in_flight = 0
        self._closed = False

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Held while a body is read and answered. Raises `RequestError` where that would be too much."""
        with self._lock:
            if self._closed:
                raise gone()
            if self._in_flight >= IN_FLIGHT:
                raise _too_much("too_many_requests", f"more than {IN_FLIGHT} requests at the same time")
            if self._asked >= REQUESTS or self._asked_bytes >= REQUEST_BYTES:
                raise _too_much("route_exhausted", "this trial has sent more than the gateway takes")
            self._in_flight += 1
        try:
            yield
        finally:
            with self._lock:
                self._in_flight -= 1

    def refuse(self, request: Request, fault: RequestError) -> Reply:
        """Answer a request whose body was not read, and record it."""
        return self._settled(_Exchange(request, self._number(request)), fault)

    def handle(self, request: Request) -> Reply:
        """Answer one request, whatever it holds. After `close` this counts and records nothing."""
        exchange = _Exchange(request, self._number(request))
        try:
            return self._answer(exchange)
        except WireError as fault:
            return self._settled(exchange, fault)
        except Exception as error:  # what a request can provoke must never excuse who sent it
            ours = RequestError(500, "server_error", "gateway_error", type(error).__name__)
            return self._settled(exchange, ours)

    def close(self) -> RouteTraffic:
        """End the route. What has not been answered by now is not, and counts nowhere."""
        with self._lock:
            self._closed = True
            return RouteTraffic(self._tally.traffic(), self._log.take())

    def _number(self, request: Request) -> int:
        with self._lock:
            if not self._closed:
                self._asked += 1
                self._asked_bytes += len(request.body)
            return self._asked

    def _answer(self, exchange: _Exchange) -> Reply:
        request = exchange.request
        check_key(request.headers)
        check_endpoint(request.method, request.endpoint)
        wire = wire_of(request.endpoint, request.headers)
        if request.endpoint == MODELS:
            return self._told(exchange, wire.models(self._names.main))
        exchange.parsed = read_json(request.body)
        asked = wire.read(exchange.parsed)
        is_background = self._names.is_background(asked)
        if request.endpoint == COUNT_TOKENS:
            return self._told(exchange, {"input_tokens": self._model.count_tokens()})
        answer = self._model.background() if is_background else self._turn(asked)
        created = int(time.time())
        exchange.answered = wire.body(answer, asked, created)
        if asked.stream:
            reply = Reply(200, tuple(wire.events(answer, asked, created)), "text/event-stream")
        else:
            reply = _json_reply(200, exchange.answered)
        with self._lock:
            if self._closed:
                raise gone()
            if is_background:
                self._tally.background += 1
            else:
                self._tally.serve(answer, self._model.cost_usd, time.monotonic_ns() - exchange.started_ns)
            self._record(exchange, reply)
        return reply

    def _turn(self, asked: Asked) -> Answer:
        try:
            return self._model.answer(asked)
        except WireError:
            raise
        except Exception as error:
            raise ModelError(500, "server_error", "model_failed", type(error).__name__) from error

    def _told(self, exchange: _Exchange, body: dict[str, Any]) -> Reply:
        """Something that is no turn of a model."""
        exchange.answered = body
        reply = _json_reply(200, body)
        with self._lock:
            if not self._closed:
                self._record(exchange, reply)
        return reply

    def _settled(self, exchange: _Exchange, fault: WireError) -> Reply:
        with self._lock:
            if self._closed:
                return error_reply(gone(), exchange.request)
            self._tally.fail(fault)
            reply = error_reply(fault, exchange.request)
            exchange.answered = json.loads(reply.parts[0])
            self._record(exchange, reply)
            return reply

    def _record(self, exchange: _Exchange, reply: Reply) -> None:
        request = exchange.request
        entry = {
            "number": exchange.number,
            "atMs": (exchange.started_ns - self._opened_ns) // 1_000_000,
            "method": request.method,
            "path": f"/v1{request.endpoint}",
            "headers": {name: value for name, value in request.headers.items() if name in KEPT_HEADERS},
            "status": reply.status,
        }
        self._log.add(entry, request.body, b"".join(reply.parts), exchange.parsed, exchange.answered)


class _Exchange:
    """A request on its way, with the JSON of both bodies as far as it is known."""

    __slots__ = ("answered", "number", "parsed", "request", "started_ns")

    def __init__(self, request: Request, number: int) -> None:
        self.request, self.number = request, number
        self.started_ns = time.monotonic_ns()
        self.parsed: Any = None
        self.answered: Any = None


def gone() -> RequestError:
    """For a route whose trial has ended."""
    return RequestError(410, "invalid_request_error", "route_closed", "this trial has ended")


def error_reply(fault: WireError, request: Request) -> Reply:
    """The reply that tells a fault in the shape of the protocol that was spoken."""
    wire = wire_of(request.endpoint, request.headers)
    return _json_reply(fault.status, wire.error(fault), FINAL if fault.is_final else ())


def _too_much(code: str, message: str) -> RequestError:
    return RequestError(429, "rate_limit_error", code, message)


def _json_reply(status: int, body: dict[str, Any], headers: tuple[tuple[str, str], ...] = ()) -> Reply:
    return Reply(status, (compact(body),), headers=headers)
