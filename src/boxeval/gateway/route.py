"""One trial's way to its model: what is asked is answered, counted and recorded, while one of its turns runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from boxeval.gateway.egress import Egress
from boxeval.gateway.endpoints import MODELS, check_endpoint, check_key, count_key, wire_of, with_path
from boxeval.gateway.interface import (
    Answer,
    Heard,
    LimitError,
    Model,
    ModelError,
    Question,
    Relay,
    RequestError,
    WireError,
)
from boxeval.gateway.json_body import read_json, weight_of
from boxeval.gateway.names import Names
from boxeval.gateway.purse import Purse, Spent
from boxeval.gateway.redact import NONE, Redactor
from boxeval.gateway.relayed import Relayed
from boxeval.gateway.reply import JSON, Reply, Request, answer_reply, error_reply, gone, json_reply
from boxeval.gateway.tally import Tally
from boxeval.gateway.traffic_log import KEPT_HEADERS, VERSION_HEADERS, TrafficLog
from boxeval.spec.egress import EgressTraffic
from boxeval.spec.trial import ModelTraffic

IN_FLIGHT = 8
"""Requests of one route whose bodies are being read or answered at the same time."""
REQUESTS = 10_000
WEIGHT_BYTES = 256 * 1024 * 1024
"""Of memory for the requests of one route that are being answered, however many they are."""
REQUEST_BYTES = 1024 * 1024 * 1024
"""What one route takes in all. A candidate that floods the gateway must not starve the other trials."""


@dataclass(frozen=True, slots=True)
class RouteTraffic:
    """What went over a route. `traffic.log` is None until `log` (JSON lines) has become a blob."""

    traffic: ModelTraffic
    log: bytes
    egress: EgressTraffic | None = None


class RouteState:
    """The server's side of a route. `purses` are the trial's and the run's."""

    def __init__(
        self,
        token: str,
        names: Names,
        model: Model,
        purses: tuple[Purse, ...] = (),
        redact: Redactor = NONE,
        egress: Egress | None = None,
    ) -> None:
        self._names, self._model, self._purses, self._redact = names, model, purses, redact
        self.egress = egress
        self._log = TrafficLog(token, redact)
        self._lock = threading.Lock()
        self._tally = Tally()
        self._opened_ns = time.monotonic_ns()
        self._asked = 0
        self._asked_bytes = 0
        self._in_flight = 0
        self._weight = 0
        self._relays: set[Relayed] = set()
        self._served_ns = 0
        self._paused = threading.Event()
        self._closed = False

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Held while a body is read and answered. Raises `RequestError` where that would be too much."""
        with self._lock:
            if self._paused.is_set():
                raise gone()
            if self._in_flight >= IN_FLIGHT:
                raise _too_much(
                    "too_many_requests", f"more than {IN_FLIGHT} requests at the same time", False
                )
            if self._asked >= REQUESTS or self._asked_bytes >= REQUEST_BYTES:
                raise _too_much("route_exhausted", "this trial has sent more than the gateway takes", True)
            self._in_flight += 1
        try:
            yield
        finally:
            with self._lock:
                self._in_flight -= 1

    def refuse(self, request: Request, fault: RequestError) -> Reply:
        """Answer a request whose body was not read, and record it."""
        return self._settled(self._exchange(request), fault)

    def handle(self, request: Request) -> Reply:
        """Answer one request, whatever it holds. Outside of a turn this counts and records nothing."""
        exchange = self._exchange(request)
        try:
            return self._answer(exchange)
        except WireError as fault:
            return self._settled(exchange, fault)
        except Exception as error:  # what a request can provoke must never excuse who sent it
            ours = RequestError(500, "server_error", "gateway_error", type(error).__name__)
            return self._settled(exchange, ours)
        finally:
            if not exchange.is_relayed:
                self._let_go(exchange)

    def resume(self) -> None:
        """A turn begins."""
        with self._lock:
            if self._closed:
                return
            self._paused.clear()
        if self.egress:
            self.egress.open()

    def pause(self) -> None:
        """A turn is over: nothing more is served, and what is on its way is given up (P17)."""
        with self._lock:
            self._paused.set()
            relays = tuple(self._relays)
        for relay in relays:
            relay.abort()
        if self.egress:
            self.egress.close()

    def close(self) -> RouteTraffic:
        """End the route. What has not been answered by now is not, and counts nowhere."""
        self.pause()
        with self._lock:
            self._closed = True
            egress = self.egress.traffic() if self.egress else None
            return RouteTraffic(self._tally.traffic(), self._log.take(), egress)

    def _exchange(self, request: Request) -> _Exchange:
        with self._lock:
            if not self._paused.is_set():
                self._asked += 1
                self._asked_bytes += len(request.body)
            return _Exchange(request, self._asked)

    def _hold(self, exchange: _Exchange) -> None:
        """Make sure that there is room for what the body becomes. One alone always has it."""
        weight = weight_of(exchange.request.body)
        with self._lock:
            if self._weight and self._weight + weight > WEIGHT_BYTES:
                raise _too_much("too_many_requests", "too much at the same time", False)
            self._weight += weight
            exchange.weight = weight

    def _let_go(self, exchange: _Exchange) -> None:
        with self._lock:
            self._weight -= exchange.weight
            exchange.weight = 0

    def _answer(self, exchange: _Exchange) -> Reply:
        request = exchange.request
        check_key(request.headers)
        check_endpoint(request.method, request.endpoint)
        wire = wire_of(request.endpoint, request.headers)
        if request.endpoint == MODELS:
            return self._told(exchange, wire.models(self._names.main))
        self._hold(exchange)
        exchange.parsed = read_json(request.body)
        data = with_path(request.endpoint, exchange.parsed)
        asked = wire.read(data)
        is_background = self._names.is_background(asked)
        versions = {name: value for name, value in request.headers.items() if name in VERSION_HEADERS}
        question = Question(wire, request.endpoint, asked, data, versions, is_background)
        if key := count_key(request.endpoint):
            counted = self._ask(question)
            if isinstance(counted, int):
                return self._told(exchange, {key: counted})
            return self._relay(exchange, question, counted, is_turn=False)
        self._open_purses()
        try:
            answer = self._ask(question)
            if isinstance(answer, Answer):
                return self._serve(exchange, question, answer)
            return self._relay(exchange, question, answer)
        except WireError:
            for purse in self._purses:
                purse.give_back()
            raise

    def _ask(self, question: Question) -> Any:
        try:
            if count_key(question.endpoint):
                return self._model.count_tokens(question)
            return self._model.serve(question)
        except WireError:
            raise
        except Exception as error:
            raise ModelError(500, "server_error", "model_failed", type(error).__name__) from error

    def _serve(self, exchange: _Exchange, question: Question, answer: Answer) -> Reply:
        """An answer that is here already."""
        if answer.delay_ms and self._paused.wait(answer.delay_ms / 1000):
            with self._lock:
                self._unanswered(exchange.started_ns)
            raise gone()
        created = int(time.time())
        exchange.answered = question.wire.body(answer, question.asked, created)
        reply = answer_reply(answer, question, exchange.answered, created)
        calls = {call.id for call in answer.calls}
        heard = Heard(answer.usage, True, calls, usages_told=1, is_refusal=answer.is_refusal)
        size = len(exchange.request.body) + (reply.size_bytes or 0)
        spent = Spent(answer.usage, answer.cost_usd, size, time.monotonic_ns() - exchange.started_ns)
        with self._lock:
            if self._paused.is_set():
                raise gone()
            self._count(question, heard, spent)
            self._record(exchange, reply.status)
        self._pay(spent)
        return reply

    def _pay(self, spent: Spent) -> None:
        for purse in self._purses:
            purse.pay(spent)

    def _relay(self, exchange: _Exchange, question: Question, relay: Relay, is_turn: bool = True) -> Reply:
        """An answer that arrives while it is sent. It is accounted for when it is over."""

        def done(relayed: Relayed, fault: ModelError | None) -> None:
            spent = relayed.spent(len(exchange.request.body))
            exchange.withheld = relay.withheld
            exchange.answered = bytes(relayed.kept).decode("utf-8", "backslashreplace")
            with self._lock:
                self._relays.discard(relayed)
                if not relayed.is_answered:
                    self._unanswered(relayed.heard_ns)
                if is_turn:
                    self._count(question, relayed.meter.heard, spent)
                if fault:
                    self._tally.fail(fault)
                self._record(exchange, relay.status)
            self._let_go(exchange)
            if is_turn:
                self._pay(spent)

        relayed = Relayed(relay, question, self._redact, done)
        with self._lock:
            if len(self._relays) >= IN_FLIGHT:
                raise _too_much(
                    "too_many_requests", f"more than {IN_FLIGHT} requests at the same time", False
                )
            self._relays.add(relayed)
        try:
            relay.open()
        except WireError:
            with self._lock:
                self._relays.discard(relayed)
                if self._paused.is_set():
                    self._unanswered(relayed.heard_ns)
            raise
        if self._paused.is_set():
            relayed.abort()
            raise gone()
        exchange.is_relayed = True
        return Reply(relay.status, relayed, relay.content_type or JSON)

    def _count(self, question: Question, heard: Heard, spent: Spent) -> None:
        self._served_ns = time.monotonic_ns()
        self._tally.serve(heard, spent, question.is_background)
        self._tally.hear_results({said.call_id: said.failed for said in question.asked.said if said.call_id})

    def _unanswered(self, since_ns: int) -> None:
        """A request for which the model was last heard then is given up; another's answer counts as a word too."""
        last_ns = max(since_ns, self._served_ns, *(relayed.heard_ns for relayed in self._relays))
        self._tally.silent_ns = max(self._tally.silent_ns, time.monotonic_ns() - last_ns)

    def _open_purses(self) -> None:
        opened: list[Purse] = []
        try:
            for purse in self._purses:
                purse.open()
                opened.append(purse)
        except LimitError:
            for purse in opened:
                purse.give_back()
            raise

    def _told(self, exchange: _Exchange, body: dict[str, Any]) -> Reply:
        """Something that is no turn of a model."""
        exchange.answered = body
        reply = json_reply(200, body)
        with self._lock:
            if not self._paused.is_set():
                self._record(exchange, reply.status)
        return reply

    def _settled(self, exchange: _Exchange, fault: WireError) -> Reply:
        with self._lock:
            if self._paused.is_set():
                return error_reply(gone(), exchange.request)
            self._tally.fail(fault)
            exchange.answered = wire_of(exchange.request.endpoint, exchange.request.headers).error(fault)
            self._record(exchange, fault.status)
        return error_reply(fault, exchange.request)

    def _record(self, exchange: _Exchange, status: int) -> None:
        request = exchange.request
        entry = {
            "number": exchange.number,
            "atMs": (exchange.started_ns - self._opened_ns) // 1_000_000,
            "method": request.method,
            "path": f"/v1{request.endpoint}",
            "headers": {name: value for name, value in request.headers.items() if name in KEPT_HEADERS},
            "status": status,
            **({"withheld": exchange.withheld} if exchange.withheld else {}),
        }
        self._log.add(entry, request.body, exchange.parsed, exchange.answered)


class _Exchange:
    """A request on its way, with the JSON of both bodies as far as it is known."""

    __slots__ = ("answered", "is_relayed", "number", "parsed", "request", "started_ns", "weight", "withheld")

    def __init__(self, request: Request, number: int) -> None:
        self.request, self.number = request, number
        self.started_ns = time.monotonic_ns()
        self.parsed: Any = None
        self.answered: Any = None
        self.weight = 0
        self.is_relayed = False
        self.withheld: tuple[str, ...] = ()


def _too_much(code: str, message: str, is_final: bool) -> RequestError:
    return RequestError(429, "rate_limit_error", code, message, is_final)
