"""A proxy before an engine's socket that fails where a test says so. Attached streams pass through it too.

Each request gets a number and a name (`POST /containers/*/start`); the test's `plan` answers with the fault for it,
or with None. Requests and answers are read whole; after an attach, bytes go both ways as they come.
"""

from __future__ import annotations

import contextlib
import enum
import http.client
import io
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

FAIL = b"HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
FIRST_BYTES = 400
"""Of a stream. The head of the answer and the first word of the shim are some 300."""
GARBAGE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]"


class Fault(enum.Enum):
    """What happens to one request. *Passed on* means that the engine does it, whatever the client hears of it."""

    CUT = "hung up before it is passed on"
    LOST = "passed on, then hung up without an answer"
    HALF = "passed on, and half of the answer; of a stream the first bytes"
    STALLED = "passed on, but never answered; a stream goes silent"
    LATE = "passed on only after the client gave up"
    TWICE = "passed on twice; the second answer is given"
    ECHOED = "passed on; the answer is given twice"
    REFUSED = "answered with 500 and not passed on"
    BROKEN = "passed on, and answered with 500"
    ODD = "answered with 500 and a body that no engine sends"
    GARBLED = "passed on, and answered with JSON of another form"
    SLOW = "passed on after a while; a stream rests after its first bytes"


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `number` counts from 0; `name` has `*` for ids and names of objects."""

    number: int
    name: str
    target: str

    @property
    def attaches(self) -> bool:
        return self.name.endswith("/attach")


Plan = Callable[[Call], Fault | None]


def _name(method: str, target: str) -> str:
    path = re.sub(r"^/v1\.\d+", "", target.partition("?")[0])
    return f"{method} " + re.sub(
        r"^(/(?:containers|volumes|images|networks)/)(?!create$|json$)[^/]+", r"\1*", path
    )


class EngineProxy:
    """Listens on `place`; a context manager. `slow_s` is what SLOW waits; `calls` is what was asked so far."""

    def __init__(self, engine: str, place: Path, plan: Plan = lambda _: None, slow_s: float = 0.0) -> None:
        self._engine, self._place = engine.removeprefix("unix://"), place
        self.plan, self.slow_s = plan, slow_s
        self.calls: list[Call] = []
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._down = False
        self._listener = socket.socket(socket.AF_UNIX)

    @property
    def host(self) -> str:
        return f"unix://{self._place}"

    def __enter__(self) -> EngineProxy:
        self._listener.bind(str(self._place))
        self._listener.listen(128)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()
        self._listener.close()
        self._place.unlink()

    def down(self) -> None:
        """Hang up everything, streams too, and refuse what comes."""
        with self._lock:
            self._down = True
            for one in self._open:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def up(self) -> None:
        """Take requests again."""
        self._down = False

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _connect(self) -> socket.socket:
        upstream = socket.socket(socket.AF_UNIX)
        upstream.connect(self._engine)
        return upstream

    def _serve(self, client: socket.socket) -> None:
        with (
            self._kept(client),
            client.makefile("rb") as reader,
            contextlib.suppress(OSError, http.client.HTTPException),
        ):
            while not self._down and (head := _head(reader)):
                method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
                request = head + _body(reader, head)
                with self._lock:
                    call = Call(len(self.calls), _name(method, target), target)
                    self.calls.append(call)
                fault = self.plan(call)
                if fault is Fault.CUT:
                    return
                if call.attaches and fault not in (Fault.REFUSED, Fault.ODD, Fault.BROKEN, Fault.GARBLED):
                    self._attach(client, request, fault)
                    return
                if not self._answer(client, method, request, fault):
                    return

    def _answer(self, client: socket.socket, method: str, request: bytes, fault: Fault | None) -> bool:
        """Do one request; False if the client is to be hung up."""
        if fault in (Fault.REFUSED, Fault.ODD):
            body = b'{"message":"made up by the test"}' if fault is Fault.REFUSED else b'[1, "\xff'
            client.sendall(FAIL % (len(body), body))
            return True
        if fault is Fault.SLOW:
            time.sleep(self.slow_s)
        if fault is Fault.LATE:
            _until_hung_up(client)
        answer = self._ask(method, request)
        if fault is Fault.TWICE:
            answer = self._ask(method, request)
        if fault is Fault.STALLED:
            _until_hung_up(client)
        if fault in (Fault.LOST, Fault.STALLED, Fault.LATE):
            return False
        if fault is Fault.HALF:
            client.sendall(answer[: max(len(answer) * 2 // 3, 20)])
            return False
        if fault is Fault.BROKEN:
            answer = FAIL % (2, b"{}")
        if fault is Fault.GARBLED:
            answer = GARBAGE
        client.sendall(answer * 2 if fault is Fault.ECHOED else answer)
        return True

    def _ask(self, method: str, request: bytes) -> bytes:
        """The engine's answer, with its length told."""
        with self._connect() as upstream, self._kept(upstream):
            upstream.sendall(request)
            response = http.client.HTTPResponse(upstream, method=method)
            response.begin()
            body = response.read()
            head = [f"HTTP/1.1 {response.status} {response.reason}"]
            for name, value in response.getheaders():
                if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                    head.append(f"{name}: {value}")
            if method != "HEAD" and response.status not in (204, 304):
                head.append(f"Content-Length: {len(body)}")
            response.close()
        return "\r\n".join(head).encode() + b"\r\n\r\n" + body

    def _attach(self, client: socket.socket, request: bytes, fault: Fault | None) -> None:
        """Hand a stream through. Its end in one direction is passed on as that."""
        with self._connect() as upstream, self._kept(upstream):
            upstream.sendall(request)
            up = threading.Thread(target=_pump, args=(client, upstream), daemon=True)
            up.start()
            if fault is Fault.LOST:
                return
            if fault in (Fault.HALF, Fault.STALLED, Fault.SLOW):
                _pump(upstream, client, FIRST_BYTES)
            if fault is Fault.SLOW:
                time.sleep(self.slow_s)
            if fault is Fault.STALLED:
                up.join()
            elif fault is not Fault.HALF:
                _pump(upstream, client)

    @contextlib.contextmanager
    def _kept(self, one: socket.socket) -> Iterator[None]:
        """Close a connection in the end, and sooner if all go down."""
        with self._lock:
            self._open.add(one)
        try:
            yield
        finally:
            with self._lock:
                self._open.discard(one)
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


def _head(reader: io.BufferedReader) -> bytes:
    lines = []
    while line := reader.readline():
        lines.append(line)
        if line == b"\r\n":
            return b"".join(lines)
    return b""


def _body(reader: io.BufferedReader, head: bytes) -> bytes:
    if found := re.search(rb"(?i)\r\ncontent-length: *(\d+)", head):
        return reader.read(int(found[1]))
    if not re.search(rb"(?i)\r\ntransfer-encoding: *chunked", head):
        return b""
    pieces = []
    while size := reader.readline():
        pieces += [size, reader.read(int(size, 16) + 2)]
        if int(size, 16) == 0:
            break
    return b"".join(pieces)


def _until_hung_up(client: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while client.recv(4096, socket.MSG_PEEK):
            time.sleep(0.05)


def _pump(source: socket.socket, sink: socket.socket, limit: int | None = None) -> None:
    left = limit
    with contextlib.suppress(OSError):
        while (left is None or left > 0) and (data := source.recv(65536 if left is None else left)):
            sink.sendall(data)
            left = None if left is None else left - len(data)
    if limit is None:
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)
