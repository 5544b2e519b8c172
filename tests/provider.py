"""A server on the loopback that plays a model's provider, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from boxeval.gateway.endpoints import WIRES
from boxeval.gateway.interface import Answer, Usage

Act = Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]


@dataclass
class Provider:
    """What it does is `act`; what it got is in `asked`: path, headers with small names, body."""

    url: str
    act: Act
    asked: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list)


def answers(text: str = "From afar.", usage: Usage | None = None) -> Act:
    """Answers in the protocol of the path, streamed if that is asked for."""

    def act(handler: BaseHTTPRequestHandler, data: dict[str, Any]) -> None:
        wire = WIRES[handler.path.partition("?")[0].removeprefix("/v1")]
        asked = wire.read(data)
        answer = Answer(1, text, (), usage or Usage(1000, 100, 400))
        if asked.stream:
            send(handler, 200, "text/event-stream", *wire.events(answer, asked, 0))
        else:
            send(handler, 200, "application/json", json.dumps(wire.body(answer, asked, 0)).encode())

    return act


def fails(status: int, message: str = "no", code: str = "provider_code") -> Act:
    """An error in OpenAI's shape."""
    error = {"error": {"message": message, "type": "some_error", "code": code}}
    return lambda handler, _: send(handler, status, "application/json", json.dumps(error).encode())


def send(handler: BaseHTTPRequestHandler, status: int, kind: str, *pieces: bytes) -> None:
    """A whole answer in chunks."""
    handler.send_response(status)
    handler.send_header("Content-Type", kind)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    for piece in pieces:
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
    handler.wfile.write(b"0\r\n\r\n")


@contextmanager
def provider(act: Act) -> Iterator[Provider]:
    """Serve until the end of the block."""
    playing: Provider

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            playing.asked.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            self.close_connection = True
            playing.act(self, body)

        def log_message(self, *_: object) -> None:
            """Nothing is told."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """A gateway that hangs up is what some tests are about."""

    with Server(("127.0.0.1", 0), Handler) as server:
        playing = Provider(f"http://127.0.0.1:{server.server_port}/v1", act)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield playing
        finally:
            server.shutdown()
            thread.join()
