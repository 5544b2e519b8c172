"""HTTP/1.1 over one accepted socket. h11 does the protocol; the waits and their bounds are here."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import replace

import h11

from boxeval.gateway.egress import Egress
from boxeval.gateway.interface import RequestError, malformed
from boxeval.gateway.proxy import body_of, head_of, is_proxied, place_of, splice, token_of
from boxeval.gateway.relayed import Relayed
from boxeval.gateway.reply import STREAM, Cut, Reply, Request, error_reply
from boxeval.gateway.route import RouteState

HEAD_BYTES = 16 * 1024
BODY_BYTES = 8 * 1024 * 1024
IDLE_S = 120.0
"""For the next request's head to arrive whole."""
BODY_S = 60.0
SEND_S = 60.0
LINGER_S = 5.0
"""For a peer to finish a body that was refused unread; cut off at once, it might never see the answer."""

Find = Callable[[str], tuple[RouteState, str]]
"""Takes the target of a request to its route and endpoint, or raises `RequestError`."""
FindEgress = Callable[[str], Egress]
"""Takes a route's token to its way out, or raises `RequestError`."""


class Connection:
    """Serves requests until the peer, an error or a time limit ends the connection."""

    def __init__(self, peer: socket.socket, find: Find, find_egress: FindEgress) -> None:
        self._peer, self._find, self._find_egress = peer, find, find_egress
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)

    def serve(self) -> None:
        """Return when the connection is over. A peer's misbehaviour is not an error of ours."""
        with contextlib.suppress(OSError, h11.ProtocolError, Cut):
            while self._exchange():
                self._http.start_next_cycle()

    def _exchange(self) -> bool:
        """One request and its answer; says whether another one may follow."""
        try:
            head = self._event(time.monotonic() + IDLE_S)
            if not isinstance(head, h11.Request):
                return False
            if is_proxied(head.method.decode("ascii"), head.target.decode("ascii")):
                self._proxy(head)
                return False
            reply = self._answer(head)
        except h11.RemoteProtocolError as error:
            if self._http.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
                return False
            status = 431 if error.error_status_hint == 431 else 400
            fault = RequestError(status, "invalid_request_error", "invalid_http", str(error))
            self._send(error_reply(fault, Request("", "", {})), headless=False)
            self._linger()
            return False
        # A body that was refused unread leaves the connection in the middle of a request: it ends then.
        self._send(reply, headless=head.method == b"HEAD")
        if self._http.their_state is h11.SEND_BODY:
            self._linger()
        return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE

    def _proxy(self, head: h11.Request) -> None:
        """Pass one request on, or everything after it, to another host; the connection is used up by it."""
        request, target = _request(head), head.target.decode("ascii")
        try:
            egress = self._find_egress(token_of(request.headers))
            place = place_of(request.method, target)
            host = egress.connect(*place)
        except RequestError as fault:
            self._send(error_reply(fault, request), headless=False)
            if self._http.their_state is h11.SEND_BODY:
                self._linger()
            return
        try:
            if request.method == "CONNECT":
                self._write(h11.Response(status_code=200, headers=[]))
                early = self._http.trailing_data[0]
                egress.moved(*place, len(early), 0)
                host.sendall(early)
            else:
                host.sendall(head_of(head, target))
                for piece in body_of(head, self._pieces(time.monotonic() + BODY_S)):
                    egress.moved(*place, len(piece), 0)
                    host.sendall(piece)
            splice(self._peer, host, egress, place, one_way=request.method != "CONNECT")
        finally:
            egress.release(host)

    def _answer(self, head: h11.Request) -> Reply:
        request = _request(head)
        try:
            route, endpoint = self._find(head.target.decode("ascii"))
        except RequestError as fault:
            return error_reply(fault, request)
        request = replace(request, endpoint=endpoint)
        try:
            with route.entered():
                return route.handle(replace(request, body=self._body(request.headers)))
        except RequestError as fault:
            return route.refuse(request, fault)

    def _body(self, headers: Mapping[str, str]) -> bytes:
        if int(headers.get("content-length", "0")) > BODY_BYTES:
            raise _too_large()
        body = bytearray()
        for piece in self._pieces(time.monotonic() + BODY_S):
            body += piece
            if len(body) > BODY_BYTES:
                raise _too_large()
        return bytes(body)

    def _pieces(self, deadline: float) -> Iterator[bytes]:
        """The body of the request as it comes."""
        while not isinstance(event := self._event(deadline), h11.EndOfMessage):
            if not isinstance(event, h11.Data):
                raise malformed("the body ended early")
            yield bytes(event.data)

    def _event(self, deadline: float) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                self._write(h11.InformationalResponse(status_code=100, headers=[]))
            self._peer.settimeout(max(deadline - time.monotonic(), 0.001))
            self._http.receive_data(self._peer.recv(65_536))
        return event

    def _linger(self) -> None:
        deadline = time.monotonic() + LINGER_S
        self._peer.shutdown(socket.SHUT_WR)
        while (left_s := deadline - time.monotonic()) > 0:
            self._peer.settimeout(left_s)
            if not self._peer.recv(65_536):
                return

    def _send(self, reply: Reply, headless: bool) -> None:
        headers = [("Content-Type", reply.content_type), ("Cache-Control", "no-store"), *reply.headers]
        if reply.size_bytes is not None and reply.content_type != STREAM:
            headers.append(("Content-Length", str(reply.size_bytes)))
        if self._http.their_state is not h11.DONE:
            headers.append(("Connection", "close"))
        parts = iter(() if headless else reply.parts)
        try:
            self._write(h11.Response(status_code=reply.status, headers=headers))
            for part in parts:
                self._write(h11.Data(data=part))
            self._write(h11.EndOfMessage())
        finally:
            if isinstance(parts, Generator):
                parts.close()  # at once, so that a provider whose client is gone is given up
            if isinstance(reply.parts, Relayed):
                reply.parts.abort()  # also if the client was gone before the first piece was asked for

    def _write(self, event: h11.Event) -> None:
        self._peer.settimeout(SEND_S)
        self._peer.sendall(self._http.send(event) or b"")


def _request(head: h11.Request) -> Request:
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
    return Request(head.method.decode("ascii"), "", headers)


def _too_large() -> RequestError:
    return RequestError(
        413, "invalid_request_error", "request_too_large", f"a body may have at most {BODY_BYTES} bytes"
    )
