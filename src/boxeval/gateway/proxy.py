"""The forward proxy on one connection: a tunnel (CONNECT), or one plain request passed on (RFC 9110, 9112)."""

from __future__ import annotations

import base64
import selectors
import socket
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

import h11

from boxeval.gateway.egress import Egress
from boxeval.gateway.interface import RequestError, malformed

IDLE_S = 300.0
PIECE_BYTES = 64 * 1024
_OF_THE_HOP = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"),
        *("te", "trailer", "transfer-encoding", "upgrade", "host"),
    }
)


def is_proxied(method: str, target: str) -> bool:
    """Whether a request is for another host and not for the gateway."""
    return method == "CONNECT" or target.startswith(("http://", "https://"))


def token_of(headers: Mapping[str, str]) -> str:
    """The route's token, which is the user name of the proxy's address. Raises `RequestError`."""
    kind, _, told = headers.get("proxy-authorization", "").partition(" ")
    try:
        user = base64.b64decode(told, validate=True).decode("ascii").partition(":")[0]
    except ValueError:  # no base64, or no ASCII on either side of it
        user = ""
    if kind.lower() != "basic" or not user:
        raise RequestError(
            407, "invalid_request_error", "proxy_authentication", "use the proxy's whole address"
        )
    return user


def place_of(method: str, target: str) -> tuple[str, int]:
    """Host and port that are asked for. Raises `RequestError`."""
    try:
        parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
        port = parts.port
    except ValueError:
        raise malformed("there is no host and port in the target") from None
    if method != "CONNECT":
        if parts.scheme != "http":
            raise malformed("only http is passed on; https needs CONNECT")
        port = port or 80
    if not parts.hostname or not port or parts.username is not None:
        raise malformed("there is no host and port in the target")
    return parts.hostname, port


def head_of(request: h11.Request, target: str) -> bytes:
    """The request as its host gets it: nothing of this hop, and the host that was looked at as the only one named."""
    parts = urlsplit(target)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    named = {
        name.strip().lower()
        for key, value in request.headers
        if key == b"connection"
        for name in value.decode("latin-1").split(",")
    }
    lines = [f"{request.method.decode('ascii')} {path} HTTP/1.1".encode("ascii")]
    lines.append(b"Host: " + parts.netloc.encode("ascii"))
    for key, value in request.headers:
        if key.decode("latin-1") not in _OF_THE_HOP | named:
            lines.append(key + b": " + value)
    if any(key == b"transfer-encoding" for key, _ in request.headers):
        lines.append(b"Transfer-Encoding: chunked")
    lines.append(b"Connection: close")
    return b"\r\n".join(lines) + b"\r\n\r\n"


def body_of(request: h11.Request, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The body in the form that the head tells."""
    is_chunked = any(key == b"transfer-encoding" for key, _ in request.headers)
    for piece in pieces:
        yield b"%x\r\n%s\r\n" % (len(piece), piece) if is_chunked else piece
    if is_chunked:
        yield b"0\r\n\r\n"


def splice(
    client: socket.socket, host: socket.socket, egress: Egress, place: tuple[str, int], one_way: bool = False
) -> None:
    """Pass bytes on until both sides have ended, the bytes are used up, or nothing comes any more.

    `one_way`: from the host to the client only.
    """
    other = {host: client} if one_way else {client: host, host: client}
    with selectors.DefaultSelector() as ready:
        for side in other:
            ready.register(side, selectors.EVENT_READ, side)
        while ready.get_map():
            events = ready.select(IDLE_S)
            if not events:
                return
            for key, _ in events:
                end: socket.socket = key.data
                end.settimeout(IDLE_S)
                data = end.recv(PIECE_BYTES)
                sink = other[end]
                if not data:
                    ready.unregister(end)
                    sink.shutdown(socket.SHUT_WR)
                    continue
                sink.settimeout(IDLE_S)
                sink.sendall(data)
                up, down = (len(data), 0) if end is client else (0, len(data))
                if not egress.moved(*place, up, down):
                    return
