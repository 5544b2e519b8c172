"""Which protocol is spoken at which path below a route's base, and in whose shape an error is told."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from boxeval.gateway.chat import Chat
from boxeval.gateway.gemini import Gemini
from boxeval.gateway.interface import PLACEHOLDER_KEY, RequestError, Wire
from boxeval.gateway.messages import Messages
from boxeval.gateway.responses import Responses

CHAT: Wire = Chat()
MESSAGES: Wire = Messages()
GEMINI: Wire = Gemini()
WIRES: Mapping[str, Wire] = {"/chat/completions": CHAT, "/responses": Responses(), "/messages": MESSAGES}
"""What takes a request for an answer, where the path does not name the model."""
MODELS = "/models"
_COUNTS = {"/messages/count_tokens": "input_tokens"}
_METHODS = {**dict.fromkeys(WIRES, "POST"), MODELS: "GET", **dict.fromkeys(_COUNTS, "POST")}
_GEMINI = re.compile(r"/models/([^/:]+):(generateContent|streamGenerateContent|countTokens)")


def wire_of(endpoint: str, headers: Mapping[str, str]) -> Wire:
    """The protocol of an endpoint; where it does not tell, that of the client by the headers that it sends."""
    if endpoint in WIRES:
        return WIRES[endpoint]
    if _GEMINI.fullmatch(endpoint) or "x-goog-api-key" in headers:
        return GEMINI
    return MESSAGES if endpoint in _COUNTS or "anthropic-version" in headers else CHAT


def answers_at(endpoint: str) -> Wire | None:
    """The protocol of an endpoint that answers; None of any other."""
    named = _GEMINI.fullmatch(endpoint)
    return GEMINI if named and named[2] != "countTokens" else WIRES.get(endpoint)


def count_key(endpoint: str) -> str | None:
    """The name that a count of tokens has in its answer; None of an endpoint that does not count."""
    named = _GEMINI.fullmatch(endpoint)
    return "totalTokens" if named and named[2] == "countTokens" else _COUNTS.get(endpoint)


def with_path(endpoint: str, data: Any) -> Any:
    """The body with what the path says of model and stream."""
    named = _GEMINI.fullmatch(endpoint)
    if named is None or not isinstance(data, dict):
        return data
    return {**data, "model": named[1], "stream": named[2] == "streamGenerateContent"}


def check_endpoint(method: str, endpoint: str) -> None:
    """Raise `RequestError` if nothing is served there, or not by this method."""
    wanted = "POST" if _GEMINI.fullmatch(endpoint) else _METHODS.get(endpoint)
    if wanted is None:
        raise unknown_url()
    if method != wanted:
        raise RequestError(
            405, "invalid_request_error", "method_not_allowed", f"only {wanted} is served here"
        )


def check_key(headers: Mapping[str, str]) -> None:
    """Raise `RequestError` if the placeholder is in none of the headers that the protocols use."""
    sent = (headers.get("authorization"), headers.get("x-api-key"), headers.get("x-goog-api-key"))
    if not {f"Bearer {PLACEHOLDER_KEY}", PLACEHOLDER_KEY}.intersection(sent):
        raise RequestError(
            401, "invalid_request_error", "invalid_api_key", "send the API key that the environment gives"
        )


def unknown_url() -> RequestError:
    """For every path that leads nowhere, an unknown token included."""
    return RequestError(404, "invalid_request_error", "unknown_url", "there is nothing at this path")
