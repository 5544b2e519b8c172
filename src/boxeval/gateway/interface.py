"""What goes between a wire and a model: what was asked, what is answered, and how a request can fail.

A wire (`chat`, `responses`, `messages`) reads a protocol into `Asked` and shapes an `Answer`; a model turns one into
the other. Neither does IO.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

PLACEHOLDER_KEY = "boxeval-placeholder"
"""The only API key that a box ever sees. It opens nothing: the token in a route's path is what counts."""


@dataclass(frozen=True, slots=True)
class Said:
    """One thing that the candidate sent after the model's last answer: words, or what a tool gave back.

    `call_id` is None for words. `failed` is None where the protocol has no word for it.
    """

    text: str
    call_id: str | None = None
    failed: bool | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for an answer, as far as an answer depends on it.

    `tools` are the names on offer; `custom_tools` those of them that take text instead of a JSON object.
    """

    model: str
    stream: bool
    said: tuple[Said, ...] = ()
    tools: frozenset[str] = frozenset()
    custom_tools: frozenset[str] = frozenset()
    include_usage: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call that the model asks for."""

    id: str
    name: str
    input: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one answer. `cache_read` and `cache_write` are parts of `input`."""

    input: int
    output: int
    cache_read: int = 0
    cache_write: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """One served turn. `number` counts the turns of its route from 1; a refusal is a text that declines."""

    number: int
    text: str | None
    calls: tuple[Call, ...]
    usage: Usage
    is_refusal: bool = False


class Wire(Protocol):
    """One protocol. `created` is Unix seconds."""

    def read(self, data: Any) -> Asked:
        """Check a request's body as far as an answer depends on it. Raises `RequestError`."""

    def body(self, answer: Answer, asked: Asked, created: int) -> dict[str, Any]:
        """An answer that is not streamed."""

    def events(self, answer: Answer, asked: Asked, created: int) -> Iterator[bytes]:
        """The same answer as server-sent events, each whole."""

    def models(self, name: str) -> dict[str, Any]:
        """The list of the one model that there is."""

    def error(self, fault: WireError) -> dict[str, Any]:
        """The body of an error answer."""


class Model(Protocol):
    """Where a route's answers come from. Called by several threads at once."""

    @property
    def cost_usd(self) -> float | None:
        """Of each turn; None is unknown."""

    def answer(self, asked: Asked) -> Answer:
        """The next turn, or `WireError`."""

    def background(self) -> Answer:
        """For a request that is not part of the candidate's conversation."""

    def count_tokens(self) -> int:
        """Input tokens that a request would use."""


class WireError(Exception):
    """A request that gets an error answer: HTTP `status`, and the protocol's `kind` and `code`.

    `is_final`: a client that tries again gets the same, and is told so.
    """

    is_final = True

    def __init__(self, status: int, kind: str, code: str, message: str) -> None:
        self.status, self.kind, self.code, self.message = status, kind, code, message
        super().__init__(f"{code}: {message}")


class RequestError(WireError):
    """The candidate's doing: it asked for something that is not there or sent what cannot be read."""


class ScriptError(WireError):
    """What the script says, or does not say: told in `ModelTraffic.error`, but no excuse for a candidate."""


class ModelError(WireError):
    """The model's side failed. Only these can excuse a candidate."""


def malformed(message: str, code: str = "invalid_request") -> RequestError:
    """HTTP 400 for a request that cannot be understood."""
    return RequestError(400, "invalid_request_error", code, message)
