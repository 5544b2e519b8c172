"""The forward proxy, against servers on the loopback: what is on the list comes through, and nothing else."""

from __future__ import annotations

import base64
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from gateway_client import MODEL, chat, script

from boxeval.gateway import egress as egress_module
from boxeval.gateway.egress import Egress
from boxeval.gateway.server import Gateway, Route
from boxeval.rules.allowlist import Allowlist
from boxeval.spec.egress import EgressHost


class Site:
    """Answers with what it was sent."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, str], bytes]] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._answer(b"")

            def do_POST(self) -> None:
                if self.headers.get("Transfer-Encoding") == "chunked":
                    body = b""
                    while size := int(self.rfile.readline(), 16):
                        body += self.rfile.read(size)
                        self.rfile.readline()
                else:
                    body = self.rfile.read(int(self.headers["Content-Length"]))
                self._answer(body)

            def _answer(self, body: bytes) -> None:
                site.seen.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                self.send_response(200)
                self.send_header("Content-Length", "4")
                self.end_headers()
                self.wfile.write(b"here")

            def log_message(self, *_: object) -> None:
                """Nothing is told."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.02,))
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


@contextmanager
def way(*allow: str, **names: str) -> Iterator[tuple[Gateway, Route]]:
    """A gateway with a route that reaches `allow`; `names` are what a resolver knows, with `_` for a dot."""
    known = {name.replace("_", "."): address for name, address in names.items()}

    def resolver(host: str, _: int) -> list[str]:
        if host not in known:
            raise OSError("unknown")
        return known[host].split()

    with tempfile.TemporaryDirectory() as directory, Gateway(Path(directory) / "s") as gateway:
        yield gateway, gateway.open_route(None, egress=Egress(Allowlist(allow), resolver))


def ask(gateway: Gateway, token: str | None, head: str, body: bytes = b"") -> bytes:
    """Send a request's first line and headers to the proxy, then read to the end."""
    if token is not None:
        head += f"\r\nProxy-Authorization: Basic {base64.b64encode(f'{token}:x'.encode()).decode()}"
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(10)
        peer.connect(str(gateway.socket_path))
        peer.sendall(head.encode() + b"\r\n\r\n" + body)
        got = b""
        while piece := peer.recv(65_536):
            got += piece
        return got


def status(answer: bytes) -> int:
    return int(answer.split()[1])


def hosts(gateway: Gateway, route: Route) -> tuple[EgressHost, ...]:
    egress = gateway.close_route(route.token).egress
    assert egress is not None
    return egress.hosts


@pytest.mark.contract("P10")
def test_plain_http_comes_through_and_is_counted(site: Site) -> None:
    with way(f"127.0.0.1:{site.port}") as (gateway, route):
        place = f"127.0.0.1:{site.port}"
        head = f"GET http://{place}/a/b?c=d HTTP/1.1\r\nHost: elsewhere.example\r\n"
        head += "Connection: x-hop\r\nX-Hop: 1\r\nX-End: 2"
        answer = ask(gateway, route.token, head)
        assert status(answer) == 200 and answer.endswith(b"here")
        ((path, headers, _),) = site.seen
        (seen,) = hosts(gateway, route)
    assert path == "/a/b?c=d"
    # The host that was looked at is the only one that is named, and nothing of the hop gets through.
    assert headers["host"] == place
    assert headers["x-end"] == "2"
    assert not {"x-hop", "proxy-authorization"} & headers.keys()
    assert route.token not in str(headers)
    assert (seen.host, seen.port, seen.reached, seen.refused) == ("127.0.0.1", site.port, 1, 0)
    assert seen.received_bytes >= len(b"here")


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_comes_through(site: Site, chunked: bool) -> None:
    with way("127.0.0.0/8:" + str(site.port)) as (gateway, route):
        framing = "Transfer-Encoding: chunked" if chunked else "Content-Length: 5"
        head = f"POST http://127.0.0.1:{site.port}/ HTTP/1.1\r\nHost: a\r\n{framing}"
        body = b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n" if chunked else b"hello"
        assert status(ask(gateway, route.token, head, body)) == 200
    assert site.seen[0][2] == b"hello"


@pytest.mark.contract("P10")
def test_a_tunnel_comes_through_both_ways(site: Site) -> None:
    with way(f"good.example:{site.port}", "127.0.0.1:" + str(site.port), good_example="127.0.0.1") as (
        gateway,
        route,
    ):
        head = f"CONNECT good.example:{site.port} HTTP/1.1\r\nHost: good.example:{site.port}"
        sent = b"GET /in HTTP/1.1\r\nHost: good.example\r\nConnection: close\r\n\r\n"
        answer = ask(gateway, route.token, head, sent)
        assert status(answer) == 200 and answer.endswith(b"here")
        (seen,) = hosts(gateway, route)
    assert site.seen[0][0] == "/in"
    assert (seen.host, seen.reached, seen.sent_bytes > 0) == ("good.example", 1, True)


@pytest.mark.contract("P10")
def test_what_is_not_on_the_list_is_refused_and_told_and_not_even_looked_up(site: Site) -> None:
    with way("good.example") as (gateway, route):
        for place in (f"127.0.0.1:{site.port}", "evil.example:443", "good.example:22"):
            assert status(ask(gateway, route.token, f"CONNECT {place} HTTP/1.1\r\nHost: a")) == 403
        plain = f"GET http://127.0.0.1:{site.port}/ HTTP/1.1\r\nHost: good.example"
        assert status(ask(gateway, route.token, plain)) == 403
        seen = hosts(gateway, route)
    assert site.seen == []
    assert [(one.host, one.refused, one.reached) for one in seen] == [
        ("127.0.0.1", 2, 0),
        ("evil.example", 1, 0),
        ("good.example", 1, 0),
    ]
    assert {one.reason for one in seen} == {"is not on the list"}


@pytest.mark.contract("P10")
def test_a_name_that_leads_inside_is_refused_unless_its_address_is_named(site: Site) -> None:
    """The second list is the positive control: with the address named, the same name comes through."""
    head = f"GET http://good.example:{site.port}/ HTTP/1.1\r\nHost: a"
    with way(f"good.example:{site.port}", good_example="127.0.0.1") as (gateway, route):
        assert status(ask(gateway, route.token, head)) == 403
        (seen,) = hosts(gateway, route)
        assert seen.reason == "has the address 127.0.0.1, which is not a public one"
    assert site.seen == []
    with way(f"good.example:{site.port}", "127.0.0.1:" + str(site.port), good_example="127.0.0.1") as (
        gateway,
        route,
    ):
        assert status(ask(gateway, route.token, head)) == 200


def test_the_address_that_was_looked_at_is_the_one_that_is_reached(site: Site) -> None:
    """A name that has another address at each look-up is looked up once."""
    answers = iter([["127.0.0.1"], ["127.0.0.9"]])
    allow = Allowlist([f"good.example:{site.port}", f"127.0.0.1:{site.port}"])
    egress = Egress(allow, lambda *_: next(answers))
    connected = egress.connect("GOOD.example.", site.port)
    assert connected.getpeername() == ("127.0.0.1", site.port)
    assert list(answers) == [["127.0.0.9"]]
    egress.release(connected)


def test_a_public_address_among_others_is_the_one_that_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def connect(place: tuple[str, int], _: float) -> socket.socket:
        tried.append(place[0])
        raise OSError(111, "Connection refused")

    monkeypatch.setattr(socket, "create_connection", connect)
    egress = Egress(Allowlist(["good.example"]), lambda *_: ["169.254.169.254", "93.184.216.34", "::1"])
    with pytest.raises(Exception, match="which is not a public one"):
        egress.connect("good.example", 443)
    assert tried == ["93.184.216.34"]


@pytest.mark.parametrize("token", [None, "nobody"])
def test_who_has_no_token_or_no_list_reaches_nothing(site: Site, token: str | None) -> None:
    head = f"GET http://127.0.0.1:{site.port}/ HTTP/1.1\r\nHost: a"
    with way(f"127.0.0.1:{site.port}") as (gateway, _):
        answer = ask(gateway, token, head)
        assert status(answer) == (407 if token is None else 403)
        assert (b"Proxy-Authenticate: Basic" in answer) is (token is None)
        plain = gateway.open_route(script({"text": "x"}), MODEL)
        assert status(ask(gateway, plain.token, head)) == 403
    assert site.seen == []


@pytest.mark.parametrize(
    "line",
    [
        "CONNECT example.org HTTP/1.1",
        "CONNECT example.org:x HTTP/1.1",
        "CONNECT :443 HTTP/1.1",
        "CONNECT u@example.org:443 HTTP/1.1",
        "GET https://example.org/ HTTP/1.1",
        "GET http:///x HTTP/1.1",
        "GET http://u:p@example.org/ HTTP/1.1",
        "GET http://[::1/ HTTP/1.1",
        "GET http://example.org:99999/ HTTP/1.1",
    ],
)
def test_a_target_that_names_no_place_is_refused(line: str) -> None:
    with way("example.org") as (gateway, route):
        assert status(ask(gateway, route.token, f"{line}\r\nHost: a")) == 400
        assert hosts(gateway, route) == ()


def test_a_route_without_a_model_has_none() -> None:
    with way("example.org") as (gateway, route):
        answered = chat(gateway.socket_path, route.path)
        assert (answered.status, answered.code) == (404, "model_not_found")


@pytest.mark.contract("P17")
def test_the_end_of_a_turn_ends_every_tunnel() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with way(f"127.0.0.1:{port}") as (gateway, route), socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(5)
            peer.connect(str(gateway.socket_path))
            login = base64.b64encode(f"{route.token}:x".encode()).decode()
            head = (
                f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: a\r\nProxy-Authorization: Basic {login}\r\n\r\n"
            )
            peer.sendall(head.encode())
            far, _ = silent.accept()
            assert status(peer.recv(1000)) == 200
            gateway.pause_route(route.token)
            with far:
                far.settimeout(5)
                assert far.recv(10) == b""
            assert peer.recv(10) == b""
            late = ask(gateway, route.token, f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: a")
            assert status(late) == 410


def test_bytes_and_tunnels_are_bounded(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(egress_module, "TUNNELS", 2)
    egress = Egress(Allowlist([f"127.0.0.1:{site.port}"]))
    held = [egress.connect("127.0.0.1", site.port) for _ in "12"]
    with pytest.raises(Exception, match="at the same time"):
        egress.connect("127.0.0.1", site.port)
    for one in held:
        egress.release(one)
    monkeypatch.setattr(egress_module, "BYTES", 1000)
    assert egress.moved("127.0.0.1", site.port, 0, 999)
    assert not egress.moved("127.0.0.1", site.port, 1, 0)
    with pytest.raises(Exception, match="has moved 1000 bytes"):
        egress.connect("127.0.0.1", site.port)


def test_a_receipt_lists_so_many_hosts_and_counts_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(egress_module, "LISTED", 3)
    egress = Egress(Allowlist(["example.org"]))
    for number in range(5):
        with pytest.raises(Exception, match=r"is no host name|not on the list"):
            egress.connect(f"host{number}.example\x1b" if number == 0 else f"host{number}.example", 443)
    traffic = egress.traffic()
    assert len(traffic.hosts) == 3
    assert traffic.left_out == 2
    assert "\x1b" not in traffic.hosts[0].host
