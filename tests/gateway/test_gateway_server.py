"""The server under friendly and hostile connections: it answers, stays up, and stops at once."""

from __future__ import annotations

import json
import socket
import stat
import tempfile
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from gateway_client import MODEL, UnixConnection, chat, raw, request, script

from boxeval.errors import BoxevalError
from boxeval.gateway import connection, server
from boxeval.gateway.cassette import Exchange
from boxeval.gateway.connection import Connection
from boxeval.gateway.endpoints import CHAT
from boxeval.gateway.interface import Asked, Question
from boxeval.gateway.redact import NONE
from boxeval.gateway.relayed import Relayed
from boxeval.gateway.replay import ReplayedRelay
from boxeval.gateway.reply import Reply
from boxeval.gateway.server import Gateway


def healthy(gateway: Gateway) -> bool:
    route = gateway.open_route(script({"text": "up"}), MODEL)
    return chat(gateway.socket_path, route.path).status == 200


def test_an_unknown_token_gets_404_in_the_protocols_shape(gateway: Gateway) -> None:
    for base in ("/t/nobody/v1", "/t//v1", "/v1", "/t", "", "//t/x/v1"):
        answered = request(gateway.socket_path, f"{base}/chat/completions", b"{}")
        assert (answered.status, answered.code) == (404, "unknown_url")


def test_the_socket_is_for_everyone_in_a_directory_for_no_one(gateway: Gateway) -> None:
    assert stat.S_IMODE(gateway.socket_path.stat().st_mode) == 0o666
    assert stat.S_IMODE(gateway.socket_path.parent.stat().st_mode) == 0o700


def test_a_directory_that_others_may_enter_is_refused(tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o755)
    with pytest.raises(BoxevalError, match="0700"):
        Gateway(open_to_all / "s").start()
    assert list(open_to_all.iterdir()) == []


def test_a_place_where_no_socket_can_be_is_one_clear_error() -> None:
    with tempfile.TemporaryDirectory() as directory:
        for place in (Path(directory) / "missing" / "s", Path(directory) / ("long" * 30)):
            with pytest.raises(BoxevalError, match="cannot listen"):
                Gateway(place).start()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\r\n\r\n",
        b"\x00" * 1000,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX-Long: " + b"a" * 100_000 + b"\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n",
    ],
)
def test_malformed_http_ends_one_connection_only(gateway: Gateway, data: bytes) -> None:
    answer = raw(gateway.socket_path, data)
    if answer:
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.split()[1][:1] == b"4"
        assert set(json.loads(body)) == {"error"}
    assert healthy(gateway)


def test_a_body_that_ends_early_costs_no_turn(gateway: Gateway) -> None:
    route = gateway.open_route(script({"text": "up"}), MODEL)
    head = f"POST {route.path}/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 500\r\n\r\n"
    raw(gateway.socket_path, head.encode() + b"{")
    assert chat(gateway.socket_path, route.path).status == 200


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_over_the_cap_is_refused_and_recorded(gateway: Gateway, chunked: bool) -> None:
    route = gateway.open_route(script({"text": "up"}), MODEL)
    piece = b"x" * (1024 * 1024)
    size = connection.BODY_BYTES + 1
    http = UnixConnection(gateway.socket_path)
    http.putrequest("POST", f"{route.path}/chat/completions")
    http.putheader("Authorization", "Bearer boxeval-placeholder")
    http.putheader(*(("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(size))))
    http.endheaders()
    for start in range(0, size, len(piece)):
        part = piece[: size - start]
        http.send(b"%x\r\n%s\r\n" % (len(part), part) if chunked else part)
    if chunked:
        http.send(b"0\r\n\r\n")
    response = http.getresponse()
    assert response.status == 413
    assert json.loads(response.read())["error"]["code"] == "request_too_large"
    http.close()
    (entry,) = gateway.close_route(route.token).log.splitlines()
    assert json.loads(entry)["status"] == 413


def test_a_body_at_the_cap_is_read(gateway: Gateway) -> None:
    route = gateway.open_route(script({"text": "up"}), MODEL)
    start = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": ""}]})[:-4].encode()
    body = start + b"x" * (connection.BODY_BYTES - len(start) - 4) + b'"}]}'
    assert len(body) == connection.BODY_BYTES
    assert request(gateway.socket_path, f"{route.path}/chat/completions", body).status == 200


def test_a_connection_is_kept_and_a_chunked_body_is_read(gateway: Gateway) -> None:
    route = gateway.open_route(script({"text": "1"}, {"text": "2"}), MODEL)
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}).encode()
    http = UnixConnection(gateway.socket_path)
    headers = {"Authorization": "Bearer boxeval-placeholder"}
    for text in ("1", "2"):
        http.request("POST", f"{route.path}/chat/completions", iter([body[:9], body[9:]]), headers)
        response = http.getresponse()
        assert json.loads(response.read())["choices"][0]["message"]["content"] == text
    http.close()


def test_a_client_that_waits_for_100_continue_is_told(gateway: Gateway) -> None:
    route = gateway.open_route(script({"text": "up"}), MODEL)
    head = (
        f"POST {route.path}/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
        "Authorization: Bearer boxeval-placeholder\r\nExpect: 100-continue\r\n\r\n"
    )
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(10)
        peer.connect(str(gateway.socket_path))
        peer.sendall(head.encode())
        assert peer.recv(1000).startswith(b"HTTP/1.1 100 ")
        peer.sendall(b"{}")
        assert peer.recv(1000).startswith(b"HTTP/1.1 400 ")


def test_a_silent_or_dripping_peer_is_cut_off(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "IDLE_S", 0.3)
    monkeypatch.setattr(connection, "BODY_S", 0.3)
    route = gateway.open_route(script({"text": "up"}), MODEL)
    head = f"POST {route.path}/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 500\r\n\r\n"
    for start in (b"", b"GET / HT", head.encode()):
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(10)
            peer.connect(str(gateway.socket_path))
            peer.sendall(start)
            assert peer.recv(1000) == b""
    assert healthy(gateway)


def test_connections_over_the_limit_are_closed(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CONNECTIONS", 3)
    peers = [socket.socket(socket.AF_UNIX) for _ in range(6)]
    for peer in peers:
        peer.settimeout(10)
        peer.connect(str(gateway.socket_path))
    for peer in peers[3:]:
        assert peer.recv(1) == b""
    for peer in peers:
        peer.close()
    deadline = time.monotonic() + 5
    while gateway._peers and time.monotonic() < deadline:
        time.sleep(0.01)
    assert healthy(gateway)


def test_stop_is_prompt_and_leaves_nothing() -> None:
    with tempfile.TemporaryDirectory() as directory:
        before = threading.active_count()
        gateway = Gateway(Path(directory) / "gateway.sock")
        gateway.start()
        peers = [socket.socket(socket.AF_UNIX) for _ in range(5)]
        for peer in peers:
            peer.connect(str(gateway.socket_path))
            peer.sendall(b"POST / HTTP/1.1\r\n")
        started = time.monotonic()
        gateway.stop()
        assert time.monotonic() - started < 5
        assert list(Path(directory).iterdir()) == []
        assert threading.active_count() == before
        gateway.stop()
        for peer in peers:
            peer.close()


def test_a_route_can_be_closed_after_the_end() -> None:
    with tempfile.TemporaryDirectory() as directory:
        with Gateway(Path(directory) / "gateway.sock") as gateway:
            route = gateway.open_route(script({"text": "x"}), MODEL)
            chat(gateway.socket_path, route.path)
        assert gateway.close_route(route.token).traffic.requests == 1


def test_an_answer_whose_client_is_gone_before_it_begins_is_given_up() -> None:
    """Else the provider goes on with it, and it takes one of the few places, until the turn is over."""
    ended: list[object] = []
    exchange = Exchange("chat", MODEL, {}, 200, "application/json", b"{}")
    question = Question(CHAT, "/chat/completions", Asked(model=MODEL, stream=False), {})
    relayed = Relayed(ReplayedRelay(exchange), question, NONE, lambda *what: ended.append(what))
    route = SimpleNamespace(entered=nullcontext, handle=lambda _request: Reply(200, relayed))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"GET /t/x/v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
        theirs.shutdown(socket.SHUT_RD)
        Connection(ours, lambda _target: (route, "/models"), lambda _token: pytest.fail()).serve()  # type: ignore[arg-type,return-value]
    assert len(ended) == 1
