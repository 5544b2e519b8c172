"""What the gateway adds to a request, as ratios to the same scripted model behind a bare server on the loopback.

Prints a table and writes the rest of build/bench.json.

    python scripts/bench_gateway.py [--requests N]

Both servers run in a process of their own, the clients in this one, over connections that are kept. Rounds of both
alternate, since machines drift. Memory is the resident set of the gateway's process while trials come and go, each with
a route of 100 requests.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bench import write

from boxeval.gateway.endpoints import CHAT
from boxeval.gateway.interface import PLACEHOLDER_KEY, Answer, Question
from boxeval.gateway.scripted import ScriptedModel
from boxeval.gateway.server import Gateway
from boxeval.spec.models import Script

STREAMS = 32
ROUTE_REQUESTS = 100
MEMORY_REQUESTS = 10_000
ROUND = 200
TEXT = "word " * 100
BODY = {"model": "scripted", "messages": [{"role": "user", "content": "word " * 400}]}


def script(turns: int) -> Script:
    """So many turns of some hundred words."""
    return Script.model_validate({"turns": [{"text": TEXT}] * turns}, strict=False)


class Unix(http.client.HTTPConnection):
    """HTTP over the gateway's socket."""

    def __init__(self, path: str) -> None:
        super().__init__("gateway", timeout=60)
        self._path = path

    def connect(self) -> None:
        """Connect."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self._path)


def serve_gateway(pipe: Connection, path: str) -> None:
    """A gateway that opens and closes routes as it is told, and tells its resident set in KiB."""
    with Gateway(Path(path)) as gateway:
        while (told := pipe.recv()) is not None:
            name, value = told
            if name == "open":
                route = gateway.open_route(script(value))
                pipe.send((route.token, route.path))
            elif name == "close":
                gateway.close_route(value)
                pipe.send(None)
            else:
                status = Path("/proc/self/status").read_text()
                pipe.send(int(status.split("VmRSS:")[1].split()[0]))


def serve_bare(pipe: Connection) -> None:
    """The model behind nothing but a server."""
    model = ScriptedModel(script(100_000))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def do_POST(self) -> None:
            data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked = CHAT.read(data)
            answer = model.serve(Question(CHAT, "/chat/completions", asked, data))
            assert isinstance(answer, Answer)
            body = json.dumps(CHAT.body(answer, asked, 0)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()

        def log_message(self, *_: object) -> None:
            """Nothing is told."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    pipe.send(server.server_port)
    pipe.recv()


def started(target: Callable[..., None], *more: Any) -> Connection:
    """A server in a process of its own, and the way to talk to it."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    context.Process(target=target, args=(theirs, *more), daemon=True).start()
    return ours


def ask(connection: http.client.HTTPConnection, path: str, stream: bool = False) -> float:
    """Milliseconds of one request, its answer read."""
    body = json.dumps({**BODY, "stream": stream})
    began = time.perf_counter_ns()
    connection.request(
        "POST", f"{path}/chat/completions", body, {"Authorization": f"Bearer {PLACEHOLDER_KEY}"}
    )
    response = connection.getresponse()
    response.read()
    if response.status != 200:
        raise SystemExit(f"the server answers {response.status}")
    return (time.perf_counter_ns() - began) / 1e6


def told(pipe: Connection, *what: Any) -> Any:
    """Ask the gateway's process for something."""
    pipe.send(what)
    return pipe.recv()


def latencies(pipe: Connection, path: str, bare: int, count: int) -> tuple[list[float], list[float]]:
    """Milliseconds of requests through the gateway, and to the bare model."""
    through: list[float] = []
    direct: list[float] = []
    loopback = http.client.HTTPConnection("127.0.0.1", bare, timeout=60)
    while len(through) < count:
        token, base = told(pipe, "open", ROUND)
        unix = Unix(path)
        through += [ask(unix, base) for _ in range(ROUND)]
        direct += [ask(loopback, "/v1") for _ in range(ROUND)]
        unix.close()
        told(pipe, "close", token)
    loopback.close()
    return through, direct


def streams_per_s(pipe: Connection, path: str, each: int) -> float:
    """Streamed answers a second, over 32 connections at the same time, each of a trial of its own."""
    routes = [told(pipe, "open", each) for _ in range(STREAMS)]

    def go(base: str) -> None:
        unix = Unix(path)
        for _ in range(each):
            ask(unix, base, stream=True)
        unix.close()

    threads = [threading.Thread(target=go, args=(base,)) for _, base in routes]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took_s = time.monotonic() - began
    for token, _ in routes:
        told(pipe, "close", token)
    return STREAMS * each / took_s


def memory(pipe: Connection, path: str) -> tuple[int, int]:
    """Resident KiB after a tenth of the requests and after all of them."""
    seen: list[int] = []
    for done in range(ROUTE_REQUESTS, MEMORY_REQUESTS + 1, ROUTE_REQUESTS):
        token, base = told(pipe, "open", ROUTE_REQUESTS)
        unix = Unix(path)
        for _ in range(ROUTE_REQUESTS):
            ask(unix, base)
        unix.close()
        told(pipe, "close", token)
        if done in (MEMORY_REQUESTS // 10, MEMORY_REQUESTS):
            seen.append(told(pipe, "memory", None))
    return seen[0], seen[1]


def percentile(values: list[float], share: float) -> float:
    """The value below which this share lies."""
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=3000)
    count = parser.parse_args().requests
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/gateway.sock"
        bare_pipe = started(serve_bare)
        bare = bare_pipe.recv()
        pipe = started(serve_gateway, path)
        told(pipe, "memory", None)
        latencies(pipe, path, bare, ROUND)  # warms both
        through, direct = latencies(pipe, path, bare, count)
        rate = streams_per_s(pipe, path, 100)
        early, late = memory(pipe, path)
        for end in (pipe, bare_pipe):
            end.send(None)
    result = {
        "gateway_ms": {"p50": statistics.median(through), "p99": percentile(through, 0.99)},
        "bare_model_ms": {"p50": statistics.median(direct), "p99": percentile(direct, 0.99)},
        "gateway_streams_per_s": rate,
        "gateway_memory_kib": {"after_1000": early, "after_10000": late},
    }
    write({"gateway": result})
    print(f"\n{len(through)} requests each; a stream has {len(TEXT.split())} words")
    print(f"  {'':<8}{'gateway, ms':>12}{'model, ms':>12}{'added, ms':>12}{'ratio':>8}")
    for name, one, other in (
        ("p50", statistics.median(through), statistics.median(direct)),
        ("p99", percentile(through, 0.99), percentile(direct, 0.99)),
    ):
        print(f"  {name:<8}{one:12.2f}{other:12.2f}{one - other:12.2f}{one / other:8.2f}")
    print(f"\n  streams a second, {STREAMS} at a time: {rate:.0f}")
    print(f"  memory after 1,000 and 10,000 requests: {early} and {late} KiB, ratio {late / early:.3f}")


if __name__ == "__main__":
    main()
