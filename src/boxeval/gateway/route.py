"""One trial's way to its model: what is asked is answered, counted and recorded, until it is closed."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from boxeval.gateway import chat
from boxeval.gateway.interface import PLACEHOLDER_KEY, Answer, Model, ModelError, RequestError, WireError
from boxeval.gateway.traffic_log import KEPT_HEADERS, TrafficLog
from boxeval.spec.trial import ModelTraffic

IN_FLIGHT = 8
"""Requests of one route whose bodies are being read or answered at the same time."""
REQUESTS = 10_000
REQUEST_BYTES = 1024 * 1024 * 1024
"""What one route takes in all. A candidate that floods the gateway must not starve the other trials."""


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


@dataclass(frozen=True, slots=True)
class RouteTraffic:
    """What went over a route. `traffic.log` is None until `log` (JSON lines) has become a blob."""

    traffic: ModelTraffic
    log: bytes


@dataclass(slots=True)
class _Count:
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal | None = None
    model_ns: int = 0
    calls: set[str] = field(default_factory=set)
    error: str | None = None
    failed_first: bool = False


class RouteState:
    """The server's side of a route. Requests are answered one at a time, in the order of their arrival."""

    def __init__(self, token: str, model_name: str, model: Model) -> None:
        self._model_name = model_name
        self._model = model
        self._lock = threading.Lock()
        self._log = TrafficLog(token)
        self._count = _Count()
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
        with self._lock:
            if self._closed:
                return error_reply(gone())
            self._asked += 1
            exchange = _Exchange(request)
            reply = self._failed(exchange, fault)
            self._record(exchange, reply, time.monotonic_ns())
            return reply

    def handle(self, request: Request) -> Reply:
        """Answer one request, whatever it holds. After `close` this counts and records nothing."""
        started_ns = time.monotonic_ns()
        with self._lock:
            if self._closed:
                return error_reply(gone())
            self._asked += 1
            self._asked_bytes += len(request.body)
            exchange = _Exchange(request)
            try:
                reply = self._answer(exchange, started_ns)
            except WireError as error:
                reply = self._failed(exchange, error)
            except Exception as error:  # what a request can provoke must never excuse who sent it
                fault = RequestError(500, "server_error", "gateway_error", type(error).__name__)
                reply = self._failed(exchange, fault)
            self._record(exchange, reply, started_ns)
            return reply

    def close(self) -> RouteTraffic:
        """End the route. An answer that is being made is finished first and still counts."""
        with self._lock:
            self._closed = True
            count = self._count
            traffic = ModelTraffic(
                requests=count.requests,
                input_tokens=count.input_tokens,
                output_tokens=count.output_tokens,
                cost_usd=None if count.cost_usd is None else float(count.cost_usd),
                model_ms=count.model_ns // 1_000_000,
                tool_calls=len(count.calls),
                error=count.error,
                failed_before_first_turn=count.failed_first,
            )
            return RouteTraffic(traffic, self._log.take())

    def _answer(self, exchange: _Exchange, started_ns: int) -> Reply:
        request = exchange.request
        _check_key(request.headers)
        _check_endpoint(request)
        if request.endpoint == "/models":
            exchange.answered = chat.models(self._model_name)
            return _json_reply(200, exchange.answered)
        exchange.parsed = chat.read_json(request.body)
        asked = chat.read_request(exchange.parsed, self._model_name)
        answer = self._turn()
        created = int(time.time())
        exchange.answered = chat.completion(answer, self._model_name, created)
        if asked.stream:
            events = chat.stream(answer, self._model_name, created, asked.include_usage)
            reply = Reply(200, tuple(events), "text/event-stream")
        else:
            reply = _json_reply(200, exchange.answered)
        self._served(answer, time.monotonic_ns() - started_ns)
        return reply

    def _turn(self) -> Answer:
        try:
            return self._model.answer()
        except WireError:
            raise
        except Exception as error:
            raise ModelError(500, "server_error", "model_failed", type(error).__name__) from error

    def _served(self, answer: Answer, took_ns: int) -> None:
        count = self._count
        count.requests += 1
        count.input_tokens += answer.input_tokens
        count.output_tokens += answer.output_tokens
        if answer.cost_usd is not None:
            count.cost_usd = (count.cost_usd or Decimal(0)) + Decimal(str(answer.cost_usd))
        count.model_ns += took_ns
        count.calls.update(call.id for call in answer.calls)

    def _failed(self, exchange: _Exchange, fault: WireError) -> Reply:
        if isinstance(fault, ModelError) and self._count.error is None:
            self._count.error = str(fault)
            self._count.failed_first = self._count.requests == 0
        exchange.answered = chat.error(fault)
        return _json_reply(fault.status, exchange.answered)

    def _record(self, exchange: _Exchange, reply: Reply, started_ns: int) -> None:
        request = exchange.request
        entry = {
            "number": self._asked,
            "atMs": (started_ns - self._opened_ns) // 1_000_000,
            "method": request.method,
            "path": f"/v1{request.endpoint}",
            "headers": {name: value for name, value in request.headers.items() if name in KEPT_HEADERS},
            "status": reply.status,
        }
        self._log.add(entry, request.body, b"".join(reply.parts), exchange.parsed, exchange.answered)


@dataclass(slots=True)
class _Exchange:
    """A request on its way, with the JSON of both bodies as far as it is known."""

    request: Request
    parsed: Any = None
    answered: Any = None


def gone() -> RequestError:
    """For a route whose trial has ended."""
    return RequestError(410, "invalid_request_error", "route_closed", "this trial has ended")


def error_reply(fault: WireError) -> Reply:
    """The reply that tells a fault in the protocol's own shape."""
    return _json_reply(fault.status, chat.error(fault))


def _check_endpoint(request: Request) -> None:
    method = {"/chat/completions": "POST", "/models": "GET"}.get(request.endpoint)
    if method is None:
        raise unknown_url()
    if request.method != method:
        raise RequestError(
            405, "invalid_request_error", "method_not_allowed", f"only {method} is served here"
        )


def unknown_url() -> RequestError:
    """For every path that leads nowhere, an unknown token included."""
    return RequestError(404, "invalid_request_error", "unknown_url", "there is nothing at this path")


def _check_key(headers: Mapping[str, str]) -> None:
    if headers.get("authorization") != f"Bearer {PLACEHOLDER_KEY}":
        raise RequestError(
            401, "invalid_request_error", "invalid_api_key", "send the API key that the environment gives"
        )


def _too_much(code: str, message: str) -> RequestError:
    return RequestError(429, "rate_limit_error", code, message)


def _json_reply(status: int, body: dict[str, Any]) -> Reply:
    return Reply(status, (json.dumps(body, separators=(",", ":")).encode(),))
