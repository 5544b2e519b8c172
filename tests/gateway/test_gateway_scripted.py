"""A scripted model behind a route: turns in order, an end that is an error, and everything counted (S47)."""

from __future__ import annotations

import json
import threading
import time
from contextlib import ExitStack

import pytest
from gateway_client import MODEL, chat, request, script

from boxeval.gateway import route as route_module
from boxeval.gateway import traffic_log
from boxeval.gateway.chat import Chat
from boxeval.gateway.interface import Answer, Call, Question, RequestError, Usage
from boxeval.gateway.json_body import weight_of
from boxeval.gateway.names import Names
from boxeval.gateway.reply import Reply, Request
from boxeval.gateway.route import RouteState
from boxeval.gateway.scripted import ScriptedModel
from boxeval.gateway.server import Gateway

KEY = {"authorization": "Bearer boxeval-placeholder"}
ONE = script({"text": "x"})
GOOD = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}).encode()


@pytest.mark.contract("S47")
def test_request_n_gets_turn_n_and_then_an_error(gateway: Gateway) -> None:
    route = gateway.open_route(script({"text": "one"}, {"text": "two"}), MODEL)
    texts = [chat(gateway.socket_path, route.path).json["choices"][0]["message"]["content"] for _ in "12"]
    assert texts == ["one", "two"]
    for _ in range(3):
        over = chat(gateway.socket_path, route.path)
        assert (over.status, over.code) == (400, "script_exhausted")
    closed = gateway.close_route(route.token)
    assert closed.traffic.requests == 2
    assert closed.traffic.error is not None and "script_exhausted" in closed.traffic.error
    assert not closed.traffic.failed_before_first_turn
    assert len(closed.log.splitlines()) == 5


@pytest.mark.contract("S47", "S21")
def test_usage_is_fixed_and_summed(gateway: Gateway) -> None:
    turns = [{"text": "x"}] * 3
    route = gateway.open_route(script(*turns, input=11, output=5, costUsd=0.1), MODEL)
    for _ in turns:
        chat(gateway.socket_path, route.path)
    traffic = gateway.close_route(route.token).traffic
    assert (traffic.requests, traffic.input_tokens, traffic.output_tokens) == (3, 33, 15)
    assert traffic.cost_usd == 0.3  # three times 0.1 in decimal, which binary floats miss


def test_cost_that_no_one_declared_is_unmeasured(gateway: Gateway) -> None:
    route = gateway.open_route(script({"text": "x"}), MODEL)
    chat(gateway.socket_path, route.path)
    assert gateway.close_route(route.token).traffic.cost_usd is None
    free = gateway.open_route(script({"text": "x"}, costUsd=0), MODEL)
    chat(gateway.socket_path, free.path)
    assert gateway.close_route(free.token).traffic.cost_usd == 0


def test_the_log_has_every_exchange_and_no_credential(gateway: Gateway) -> None:
    route = gateway.open_route(script({"text": "hello"}), MODEL)
    spilled = {"X-Api-Key": "sk-private", "Cookie": "sk-private", "User-Agent": "a-client/1"}
    body = {"model": MODEL, "messages": [{"role": "user", "content": f"see {route.token}"}]}
    request(gateway.socket_path, f"{route.path}/chat/completions", json.dumps(body).encode(), headers=spilled)
    request(gateway.socket_path, f"{route.path}/chat/completions", b"\xffnot json", key="sk-private")
    log = gateway.close_route(route.token).log
    for secret in (b"sk-private", b"boxeval-placeholder", route.token.encode()):
        assert secret not in log
    assert b"uthorization" not in log
    first, second = (json.loads(line) for line in log.splitlines())
    assert (first["number"], first["method"], first["path"]) == (1, "POST", "/v1/chat/completions")
    assert first["status"] == 200
    assert first["headers"]["user-agent"] == "a-client/1"
    assert first["request"]["messages"][0]["content"] == "see TOKEN"
    assert first["response"]["choices"][0]["message"]["content"] == "hello"
    assert second["status"] == 401
    assert second["request"] == "\\xffnot json"
    assert second["response"]["error"]["code"] == "invalid_api_key"


def test_a_closed_route_answers_with_an_error_and_counts_nothing(gateway: Gateway) -> None:
    route = gateway.open_route(script({"text": "one"}, {"text": "two"}), MODEL)
    chat(gateway.socket_path, route.path)
    assert gateway.close_route(route.token).traffic.requests == 1
    late = chat(gateway.socket_path, route.path)
    assert (late.status, late.code) == (410, "route_closed")


def test_routes_do_not_know_of_each_other(gateway: Gateway) -> None:
    one = gateway.open_route(script({"text": "one"}), MODEL)
    two = gateway.open_route(script({"text": "two"}), MODEL)
    assert one.token != two.token
    assert len(one.token) >= 32
    assert one.path == f"/t/{one.token}/v1"
    assert one.token not in repr(one)
    assert chat(gateway.socket_path, two.path).json["choices"][0]["message"]["content"] == "two"
    assert gateway.close_route(one.token).traffic.requests == 0
    assert gateway.close_route(two.token).traffic.requests == 1


def test_parallel_requests_get_each_turn_once(gateway: Gateway) -> None:
    route = gateway.open_route(script(*({"text": str(n)} for n in range(6))), MODEL)
    got: list[str] = []

    def ask() -> None:
        got.append(chat(gateway.socket_path, route.path).json["choices"][0]["message"]["content"])

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == list("012345")


class BrokenModel(ScriptedModel):
    """Fails in a way that nobody foresaw."""

    def serve(self, question: Question) -> Answer:  # noqa: ARG002
        raise ZeroDivisionError


def test_an_unforeseen_fault_of_ours_is_an_error_of_the_models_side() -> None:
    state = RouteState("token", Names(MODEL), BrokenModel(ONE))
    reply = state.handle(Request("POST", "/chat/completions", KEY, GOOD))
    assert reply.status == 500
    traffic = state.close().traffic
    assert traffic.error is not None and "ZeroDivisionError" in traffic.error
    assert traffic.failed_before_first_turn


def test_an_unforeseen_fault_that_a_request_provokes_excuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def surprised(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Chat, "read", surprised)
    state = RouteState("token", Names(MODEL), BrokenModel(ONE))
    assert state.handle(Request("POST", "/chat/completions", KEY, GOOD)).status == 500
    traffic = state.close().traffic
    assert traffic.error is None
    assert not traffic.failed_before_first_turn


class RepeatingModel(ScriptedModel):
    """Asks for the same call twice, as a provider does that sends an answer again."""

    def serve(self, question: Question) -> Answer:  # noqa: ARG002
        return Answer(1, None, (Call("call_7", "bash", {}), Call("call_8", "bash", {})), Usage(1, 1))


@pytest.mark.contract("S23")
def test_tool_calls_are_counted_once_an_id() -> None:
    state = RouteState("token", Names(MODEL), RepeatingModel(ONE))
    for _ in range(2):
        state.handle(Request("POST", "/chat/completions", KEY, GOOD))
    assert state.close().traffic.tool_calls == 2


def test_a_long_log_keeps_sizes_and_digests_and_then_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traffic_log, "FULL_BYTES", 2_000)
    monkeypatch.setattr(traffic_log, "LIMIT_BYTES", 3_000)
    state = RouteState("token", Names(MODEL), BrokenModel(ONE))
    for _ in range(100):
        state.handle(Request("POST", "/chat/completions", KEY, b"x" * 300))
    *entries, last = (json.loads(line) for line in state.close().log.splitlines())
    assert entries[0]["request"] == "x" * 300
    # SHA-256 of 300 times "x", by coreutils.
    assert entries[-1]["request"]["omitted"] == {
        "sizeBytes": 300,
        "sha256": "0d4e2ca9e9cbced7a7a5380eb29e1a3783b9b6d0db72de36a1051038e1c1fbc7",
    }
    assert len(entries) + last["leftOut"] == 100


def test_a_deeply_nested_body_is_recorded_by_digest() -> None:
    state = RouteState("token", Names(MODEL), BrokenModel(ONE))
    for depth in range(900, 1000):
        reply = state.handle(Request("POST", "/chat/completions", KEY, b"[" * depth + b"]" * depth))
        assert reply.status == 400
    assert len(state.close().log.splitlines()) == 100


def test_a_flood_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route_module, "REQUESTS", 2)
    state = RouteState("token", Names(MODEL), BrokenModel(ONE))
    for _ in range(2):
        with state.entered():
            state.handle(Request("GET", "/models", KEY))
    with pytest.raises(RequestError, match="route_exhausted"), state.entered():
        pass


def test_few_bodies_are_read_at_a_time() -> None:
    state = RouteState("token", Names(MODEL), BrokenModel(ONE))
    with ExitStack() as stack:
        for _ in range(route_module.IN_FLIGHT):
            stack.enter_context(state.entered())
        with pytest.raises(RequestError, match="too_many_requests"), state.entered():
            pass
    with state.entered():
        pass


@pytest.mark.contract("V13")
def test_a_model_that_says_nothing_until_the_turn_ends_is_told_as_silent() -> None:
    turns = script({"text": "a", "delayMs": 100}, {"text": "b", "delayMs": 60_000})
    state = RouteState("token", Names(MODEL), ScriptedModel(turns))
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "x"}]}).encode()
    asked = Request("POST", "/chat/completions", KEY, body)
    assert state.handle(asked).status == 200
    second = threading.Thread(target=state.handle, args=(asked,))
    second.start()
    time.sleep(0.3)
    state.pause()
    second.join()
    traffic = state.close().traffic
    # Of the two waits the one that ended without a word: some 300 ms, and not the 100 ms before an answer came.
    assert traffic.requests == 1
    assert 200 <= traffic.silent_ms < 10_000


def test_what_is_heavy_in_memory_is_answered_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """2.8 million empty objects are 8 MiB on the wire, and 210 MiB as Python's."""
    assert weight_of(b"[" + b"{}," * 1000 + b"0]") > 25 * 3000
    monkeypatch.setattr(route_module, "WEIGHT_BYTES", 1000)
    state = RouteState(
        "token", Names(MODEL), ScriptedModel(script({"text": "a", "delayMs": 400}, {"text": "b"}))
    )
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "x" * 900}]}).encode()
    asked = Request("POST", "/chat/completions", KEY, body)
    replies: list[Reply] = []
    first = threading.Thread(target=lambda: replies.append(state.handle(asked)))
    first.start()
    time.sleep(0.1)
    assert state.handle(asked).status == 429
    first.join()
    assert [reply.status for reply in (*replies, state.handle(asked))] == [200, 200]
