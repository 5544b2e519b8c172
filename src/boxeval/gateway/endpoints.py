"""Which protocol is spoken at which path below a route's base, and in whose shape an error is told."""

from __future__ import annotations

from collections.abc import Mapping

from boxeval.gateway.chat import Chat
from boxeval.gateway.interface import PLACEHOLDER_KEY, RequestError, Wire
from boxeval.gateway.messages import Messages
from boxeval.gateway.responses import Responses

CHAT: Wire = Chat()
MESSAGES: Wire = Messages()
WIRES: Mapping[str, Wire] = {"/chat/completions": CHAT, "/responses": Responses(), "/messages": MESSAGES}
"""What takes a request for an answer."""
MODELS = "/models"
COUNT_TOKENS = "/messages/count_tokens"
_METHODS = {**dict.fromkeys(WIRES, "POST"), MODELS: "GET", COUNT_TOKENS: "POST"}


def wire_of(endpoint: str, headers: Mapping[str, str]) -> Wire:
    """The protocol of an endpoint; where it does not tell, that of the client by its version header."""
    if endpoint in WIRES:
        return WIRES[endpoint]
    return MESSAGES if endpoint == COUNT_TOKENS or "anthropic-version" in headers else CHAT


def check_endpoint(method: str, endpoint: str) -> None:
    """Raise `RequestError` if nothing is served there, or not by this method."""
    wanted = _METHODS.get(endpoint)
    if wanted is None:
        raise unknown_url()
    if method != wanted:
        raise RequestError(
            405, "invalid_request_error", "method_not_allowed", f"only {wanted} is served here"
        )


def check_key(headers: Mapping[str, str]) -> None:
    """Raise `RequestError` if the placeholder is in neither of the headers that the protocols use."""
    if (
        headers.get("authorization") != f"Bearer {PLACEHOLDER_KEY}"
        and headers.get("x-api-key") != PLACEHOLDER_KEY
    ):
        raise RequestError(
            401, "invalid_request_error", "invalid_api_key", "send the API key that the environment gives"
        )


def unknown_url() -> RequestError:
    """For every path that leads nowhere, an unknown token included."""
    return RequestError(404, "invalid_request_error", "unknown_url", "there is nothing at this path")
