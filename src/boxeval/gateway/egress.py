"""What a route's forward proxy decides and counts: which host, which address, how much (docs/gateway.md)."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress

from boxeval.gateway.interface import RequestError
from boxeval.gateway.reply import gone
from boxeval.rules.allowlist import Allowlist, address_of
from boxeval.spec.egress import EgressHost, EgressTraffic

CONNECT_S = 10.0
BYTES = 4 * 1024 * 1024 * 1024
"""Of one trial, both ways together."""
TUNNELS = 32
"""Of one trial at the same time."""
LISTED = 200
"""Hosts in a receipt."""

Resolve = Callable[[str, int], Iterable[str]]


def resolve(host: str, port: int) -> list[str]:
    """The addresses of a name, as the operator's machine knows them. Raises `OSError`."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(place[0]) for *_, place in found]


class Egress:
    """One trial's way out. Its connections end with `close`, from any thread."""

    def __init__(self, allowlist: Allowlist, resolver: Resolve = resolve) -> None:
        self._allowlist, self._resolve = allowlist, resolver
        self._lock = threading.Lock()
        self._seen: dict[tuple[str, int], EgressHost] = {}
        self._left_out = 0
        self._bytes = 0
        self._open: set[socket.socket] = set()
        self._is_closed = False

    def connect(self, host: str, port: int) -> socket.socket:
        """A connection to a host that may be reached, at the very address that was looked at.

        Raises `RequestError` for one that may not, or cannot.
        """
        host = host.lower().removesuffix(".")
        with self._lock:
            if self._is_closed:
                raise gone()
            if len(self._open) >= TUNNELS:
                raise self._refuse(host, port, f"more than {TUNNELS} connections at the same time", 429)
            if self._bytes >= BYTES:
                raise self._refuse(host, port, f"this trial has moved {BYTES} bytes", 429)
            if reason := self._allowlist.names(host, port):
                raise self._refuse(host, port, reason)
        status, fault = 502, "cannot be resolved"
        for address in self._addresses(host, port):
            if reason := self._allowed(host, address, port):
                status, fault = 403, reason
                continue
            try:
                connected = socket.create_connection((address, port), CONNECT_S)
            except OSError as error:
                status, fault = 502, f"cannot be reached: {error.strerror or type(error).__name__}"
                continue
            return self._opened(host, port, connected)
        with self._lock:
            raise self._refuse(host, port, fault, status)

    def _opened(self, host: str, port: int, connected: socket.socket) -> socket.socket:
        with self._lock:
            if self._is_closed:
                connected.close()
                raise gone()
            self._open.add(connected)
            self._count(host, port, reached=1)
        return connected

    def moved(self, host: str, port: int, sent: int, received: int) -> bool:
        """Count bytes; whether more may follow."""
        with self._lock:
            self._bytes += sent + received
            self._count(host.lower().removesuffix("."), port, sent_bytes=sent, received_bytes=received)
            return self._bytes < BYTES

    def release(self, connected: socket.socket) -> None:
        """A connection is over."""
        with self._lock:
            self._open.discard(connected)
        connected.close()

    def open(self) -> None:
        """A turn begins."""
        with self._lock:
            self._is_closed = False

    def close(self) -> None:
        """A turn is over: end every connection, and make no more."""
        with self._lock:
            self._is_closed = True
            for connected in self._open:
                with suppress(OSError):
                    connected.shutdown(socket.SHUT_RDWR)

    def traffic(self) -> EgressTraffic:
        """What was asked for."""
        with self._lock:
            return EgressTraffic(hosts=tuple(self._seen.values()), left_out=self._left_out)

    def _addresses(self, host: str, port: int) -> list[str]:
        if (address := address_of(host)) is not None:
            return [str(address)]
        with suppress(OSError, UnicodeError):
            return list(dict.fromkeys(self._resolve(host, port)))
        return []

    def _allowed(self, host: str, text: str, port: int) -> str | None:
        address = address_of(text)
        if address is None:
            return f"has the address {text}, which is none"
        if address_of(host) is not None:
            return self._allowlist.admits(address, port)
        return self._allowlist.resolved(address, port)

    def _refuse(self, host: str, port: int, reason: str, status: int = 403) -> RequestError:
        self._count(host, port, refused=1, reason=reason)
        return RequestError(status, "invalid_request_error", "egress_refused", f"{host}:{port} {reason}")

    def _count(self, host: str, port: int, reason: str | None = None, **more: int) -> None:
        key = host[:253], port
        if key not in self._seen:
            if len(self._seen) >= LISTED:
                self._left_out += 1
                return
            self._seen[key] = EgressHost(host=key[0].encode("unicode_escape").decode(), port=port)
        seen = self._seen[key]
        update = {name: getattr(seen, name) + value for name, value in more.items()}
        self._seen[key] = seen.model_copy(update={**update, "reason": seen.reason or reason})
