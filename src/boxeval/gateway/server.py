"""The gateway: one HTTP server on a unix socket, the only thing that a box can reach.

A route is opened for a trial with a model and closed when the trial is settled. Its token is in its path and
nowhere else: who does not know it gets nothing, and after `close_route` it leads to an error. Every
connection has a thread; their number, the size of heads and bodies, and every wait are bounded, so a hostile
peer costs little and ends nothing.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import stat
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from boxeval.errors import BoxevalError
from boxeval.gateway.connection import Connection
from boxeval.gateway.egress import Egress
from boxeval.gateway.endpoints import unknown_url
from boxeval.gateway.interface import RequestError
from boxeval.gateway.names import Names
from boxeval.gateway.purse import Purse
from boxeval.gateway.reply import gone
from boxeval.gateway.route import RouteState, RouteTraffic
from boxeval.gateway.sources import Sources, name_of
from boxeval.spec.models import PlannedModel, TrialBudget

CONNECTIONS = 1024
"""The forwarder of each slot allows 64, so no slot can use up the connections of the others."""
STOP_S = 2.0
_VERSIONS = ("v1", "v1beta")


@dataclass(frozen=True, slots=True)
class Route:
    """Where a trial reaches its model. `path` is the base path of the protocol: `/t/<token>/v1`."""

    token: str = field(repr=False)
    path: str = field(repr=False)


class Gateway:
    """Listens on `socket_path`, whose directory must exist and be private (mode 0700); a context manager."""

    def __init__(self, socket_path: Path, sources: Sources | None = None, purse: Purse | None = None) -> None:
        self.socket_path = socket_path
        self._sources = sources or Sources()
        self._purse = purse
        self._closed: set[str] = set()
        self._routes: dict[str, RouteState] = {}
        self._peers: dict[socket.socket, threading.Thread] = {}
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None
        self._acceptor: threading.Thread | None = None

    def __enter__(self) -> Gateway:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Listen. Raises `BoxevalError` if the socket cannot be made or others could reach it."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            if stat.S_IMODE(self.socket_path.parent.stat().st_mode) & 0o077:
                raise BoxevalError(f"{self.socket_path.parent}: the gateway's directory must have mode 0700")
            listener.bind(str(self.socket_path))
            # Any user of the keeper's container may connect; the directory is what keeps others out.
            self.socket_path.chmod(0o666)
            listener.listen(128)
        except OSError as error:
            listener.close()
            raise BoxevalError(f"{self.socket_path}: the gateway cannot listen there: {error}") from error
        except BoxevalError:
            listener.close()
            raise
        self._listener = listener
        self._acceptor = threading.Thread(target=self._accept, args=(listener,), name="gateway", daemon=True)
        self._acceptor.start()

    def stop(self) -> None:
        """Cut every connection, end the threads, remove the socket. Routes can still be closed."""
        listener, acceptor = self._listener, self._acceptor
        if listener is None or acceptor is None:
            return
        self._listener = None
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        acceptor.join(STOP_S)
        listener.close()
        self.socket_path.unlink(missing_ok=True)
        with self._lock:
            peers = dict(self._peers)
            for peer in peers:
                with contextlib.suppress(OSError):
                    peer.shutdown(socket.SHUT_RDWR)
        deadline = time.monotonic() + STOP_S
        for thread in peers.values():
            thread.join(max(deadline - time.monotonic(), 0))

    def open_route(
        self,
        model: PlannedModel | None,
        names: Names | str | None = None,
        budget: TrialBudget | None = None,
        egress: Egress | None = None,
    ) -> Route:
        """A new way to a model, which answers to `names`, else to its own name, and to other hosts.

        It is open until paused or closed.
        """
        token = secrets.token_urlsafe(32)
        names = names if isinstance(names, Names) else Names(names or name_of(model))
        purses = [Purse(budget, budget.cost_usd)] if budget else []
        purses += [self._purse] if self._purse else []
        served = self._sources.model(model)
        state = RouteState(token, names, served, tuple(purses), self._sources.redactor, egress)
        self._routes[token] = state
        return Route(token, f"/t/{token}/v1")

    def resume_route(self, token: str) -> None:
        """A turn begins: serve again."""
        self._routes[token].resume()

    def pause_route(self, token: str) -> None:
        """A turn is over: serve no more, and give up what is on its way."""
        self._routes[token].pause()

    def close_route(self, token: str) -> RouteTraffic:
        """End a route and say what went over it. Later requests get an error and count nowhere."""
        traffic = self._routes[token].close()
        self._closed.add(token)
        del self._routes[token]
        return traffic

    def _accept(self, listener: socket.socket) -> None:
        while self._listener is listener:
            try:
                peer, _ = listener.accept()
            except OSError:
                if self._listener is listener:
                    time.sleep(0.05)  # out of descriptors, say: others may free some
                continue
            self._admit(peer)

    def _admit(self, peer: socket.socket) -> None:
        thread = threading.Thread(target=self._serve, args=(peer,), name="gateway-peer", daemon=True)
        with self._lock:
            if len(self._peers) >= CONNECTIONS:
                peer.close()
                return
            try:
                thread.start()
            except RuntimeError:  # no more threads to be had
                peer.close()
                return
            self._peers[peer] = thread

    def _serve(self, peer: socket.socket) -> None:
        try:
            Connection(peer, self._find, self._find_egress).serve()
        finally:
            with self._lock:
                del self._peers[peer]
            peer.close()

    def _find(self, target: str) -> tuple[RouteState, str]:
        """Take `/t/<token>/v1/<endpoint>?<query>` apart."""
        parts = target.partition("?")[0].split("/", 4)
        if len(parts) != 5 or parts[:2] != ["", "t"] or parts[3] not in _VERSIONS:
            raise unknown_url()
        route = self._routes.get(parts[2])
        if route is None:
            raise gone() if parts[2] in self._closed else unknown_url()
        return route, f"/{parts[4]}"

    def _find_egress(self, token: str) -> Egress:
        route = self._routes.get(token)
        if route is None or route.egress is None:
            raise RequestError(
                403, "invalid_request_error", "egress_refused", "this trial reaches no other host"
            )
        return route.egress
