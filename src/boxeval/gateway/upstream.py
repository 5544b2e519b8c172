"""A real model: a request goes to its provider with the operator's key, and the answer comes back as it is.

No protocol is translated into another, since that would change what is measured. Nothing is tried twice. Every wait
has a bound, and `close` ends each of them from any thread.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from boxeval.gateway.hosted import confined
from boxeval.gateway.interface import ModelError, Question, RequestError, Usage, WireError
from boxeval.gateway.json_body import at
from boxeval.gateway.keyring import Secret
from boxeval.gateway.prices import cost_usd
from boxeval.gateway.redact import Redactor
from boxeval.gateway.sse import compact
from boxeval.rules.providers import wires_of
from boxeval.spec.models import PlannedUpstream

CONNECT_S = 10.0
FIRST_S = 600.0
"""For an answer to begin. A model may think long before it says anything."""
NEXT_S = 120.0
ERROR_BYTES = 64 * 1024
PIECE_BYTES = 64 * 1024
_CANDIDATES_DOING = (400, 413, 415, 422)
_VERSION = "2023-06-01"

Whole = Callable[[Question, "HttpRelay", bytes], None]
"""Told of each answer that came to its end."""


class UpstreamModel:
    """Answers of one model of one provider."""

    def __init__(
        self, place: PlannedUpstream, key: Secret | None, redact: Redactor, whole: Whole | None
    ) -> None:
        self._place, self._key, self._redact, self._whole = place, key, redact, whole

    def serve(self, question: Question) -> HttpRelay:
        """The way to an answer.

        Raises `RequestError` for a protocol that the provider does not speak, and for what it would fetch.
        """
        wires = wires_of(self._place.base_url)
        if question.wire.name not in wires:
            spoken = ", ".join(sorted(wires))
            message = f"the provider of this model speaks {spoken} only, and nothing is translated"
            raise RequestError(404, "invalid_request_error", "protocol_not_spoken", message)
        return HttpRelay(self._place, self._key, self._redact, question, self._whole)

    def count_tokens(self, question: Question) -> HttpRelay:
        """What the provider counts."""
        return self.serve(question)


class HttpRelay:
    """One request to a provider."""

    def __init__(
        self,
        place: PlannedUpstream,
        key: Secret | None,
        redact: Redactor,
        question: Question,
        whole: Whole | None,
    ) -> None:
        self.status, self.content_type = 0, ""
        data, self.withheld = confined(question.wire.name, question.data)
        self._data = {**data, "model": place.model}
        self._place, self._key, self._redact, self._question, self._whole = (
            place,
            key,
            redact,
            question,
            whole,
        )
        self._lock = threading.Lock()
        self._connection: http.client.HTTPConnection | None = None
        self._socket: socket.socket | None = None
        self._is_closed = False
        self._response: http.client.HTTPResponse | None = None

    def open(self) -> None:
        """Send the request and read the answer's head. Raises `WireError`."""
        parts = urlsplit(self._place.base_url)
        try:
            self._response = self._asked(parts.scheme, parts.hostname or "", parts.port, parts.path)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            raise self._failed(error) from None
        self.status = self._response.status
        self.content_type = self._response.headers.get("Content-Type", "application/json")
        if self.status >= 300:
            fault = self._refusal(self._response)
            self._response.close()
            self.close()
            raise fault

    def chunks(self) -> Iterator[bytes]:
        """The body as it comes."""
        response, kept, size = self._response, bytearray(), 0
        if response is None:
            raise ModelError(502, "server_error", "provider_failed", "nothing was asked")
        expected = response.length or 0  # as far as the head tells
        try:
            self._timeout(NEXT_S)
            while piece := response.read1(PIECE_BYTES):
                kept += piece if self._whole else b""
                size += len(piece)
                yield piece
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._failed(error) from None
        finally:
            response.close()
        if self._is_closed or size < expected:
            raise ModelError(502, "server_error", "provider_cut", "the answer ended early")
        if self._whole:
            self._whole(self._question, self, bytes(kept))

    def cost_usd(self, usage: Usage) -> Decimal | None:
        """By the price that was planned."""
        return cost_usd(self._place.pricing, usage)

    def close(self) -> None:
        """Give it up."""
        with self._lock:
            self._is_closed = True
            if self._socket is not None and self._connection is not None:
                with contextlib.suppress(OSError):
                    # Past the TLS object, which another thread may be using.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
                self._connection.close()
                self._socket = None

    def _asked(self, scheme: str, host: str, port: int | None, path: str) -> http.client.HTTPResponse:
        connection: http.client.HTTPConnection
        if scheme == "https":
            connection = http.client.HTTPSConnection(host, port, timeout=CONNECT_S, context=_tls())
        else:
            connection = http.client.HTTPConnection(host, port, timeout=CONNECT_S)
        connection.connect()
        with self._lock:
            if self._is_closed:
                connection.close()
                raise ConnectionAbortedError("the turn is over")
            self._connection, self._socket = connection, connection.sock
        self._timeout(FIRST_S)
        connection.request("POST", path + self._question.endpoint, self._body(), self._headers())
        return connection.getresponse()

    def _body(self) -> bytes:
        data: dict[str, Any] = self._data
        if self._question.wire.name == "chat" and self._question.asked.stream:
            # Without it a stream of this protocol does not say what it has used.
            data = {**data, "stream_options": {**(data.get("stream_options") or {}), "include_usage": True}}
        return compact(data)

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity", "User-Agent": "boxeval"}
        headers |= self._question.headers
        if self._question.wire.name == "messages":
            headers.setdefault("anthropic-version", _VERSION)
            if self._key:
                headers["x-api-key"] = self._key.value
        elif self._key:
            headers["Authorization"] = f"Bearer {self._key.value}"
        return headers

    def _timeout(self, seconds: float) -> None:
        with self._lock:
            if self._socket is not None:
                self._socket.settimeout(seconds)

    def _refusal(self, response: http.client.HTTPResponse) -> WireError:
        """What an error answer of the provider becomes; who is at fault goes by its status."""
        try:
            told = json.loads(self._redact(response.read(ERROR_BYTES)))
        except (OSError, http.client.HTTPException, ValueError, RecursionError):
            told = None
        message = at(told, "error", "message")
        message = message[:1000] if isinstance(message, str) else "no reason was given"
        kind, code = at(told, "error", "type"), at(told, "error", "code")
        kind = kind if isinstance(kind, str) else "server_error"
        code = code if isinstance(code, str) else f"provider_{response.status}"
        if response.status in _CANDIDATES_DOING:
            return RequestError(response.status, kind, code, message)
        if response.status in (401, 403):
            message = f"the provider does not take the operator's key ({response.status})"
            return ModelError(502, "server_error", "provider_refused_key", message)
        status = response.status if response.status >= 400 else 502
        return ModelError(status, kind, code, message, is_final=status == 404)

    def _failed(self, error: Exception) -> ModelError:
        reason = (
            type(error).__name__ if not isinstance(error, OSError) else error.strerror or type(error).__name__
        )
        return ModelError(502, "server_error", "provider_unreachable", str(reason)[:200], is_final=False)


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()
