"""What goes between a wire and a model: what was asked, what is answered, and how a request can fail.

A wire (`chat`, `responses`, `messages`) reads a protocol into `Asked`, shapes an `Answer`, and finds in what a provider
sends the same things; it does no IO. A model answers in one of two ways: with an `Answer`, which the wire shapes, or
with a `Relay`, the bytes of somebody who speaks the same protocol.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
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

    `tools` are the names on offer; `custom_tools` those of them that take text instead of a JSON object; `namespaces`
    has the namespace of each that is in one.
    """

    model: str
    stream: bool
    said: tuple[Said, ...] = ()
    tools: frozenset[str] = frozenset()
    custom_tools: frozenset[str] = frozenset()
    namespaces: Mapping[str, str] = field(default_factory=dict)
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
    """One served turn. `number` counts the turns of its route from 1; a refusal is a text that declines.

    `cost_usd` is None if nobody knows it. The last three are faults of the model on purpose: a wait, and after how
    many events a stream ends without its end, or has one that is no JSON.
    """

    number: int
    text: str | None
    calls: tuple[Call, ...]
    usage: Usage
    cost_usd: Decimal | None = None
    is_refusal: bool = False
    delay_ms: int = 0
    cut_after: int | None = None
    garble_after: int | None = None


class Relay(Protocol):
    """An answer that arrives while it is passed on. `withheld` names what of the request did not go to the provider."""

    status: int
    content_type: str
    withheld: tuple[str, ...]

    def open(self) -> None:
        """Ask, and wait for the head of the answer. Raises `WireError`."""

    def chunks(self) -> Iterator[bytes]:
        """The body as it comes. Raises `ModelError` if it ends early."""

    def cost_usd(self, usage: Usage) -> Decimal | None:
        """What that costs; None if nobody knows it."""

    def close(self) -> None:
        """Give it up, from any thread; `open` and `chunks` end then."""


@dataclass(slots=True)
class Heard:
    """What a wire has found in the answer of a provider so far.

    `usage` is the last that was told, and `is_whole` says that the answer came to its end. The last three are what
    the stream metrics count (S28).
    """

    usage: Usage | None = None
    is_whole: bool = False
    calls: set[str] = field(default_factory=set)
    text: str = ""
    usages_told: int = 0
    snapshots: int = 0
    message_id: str | None = None
    is_refusal: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """A request on its way to a model: in which protocol it came, and all that it says.

    `headers` are those that choose a version of the protocol.
    """

    wire: Wire
    endpoint: str
    asked: Asked
    data: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    is_background: bool = False


class Wire(Protocol):
    """One protocol. `created` is Unix seconds."""

    name: str

    def read(self, data: Any) -> Asked:
        """Check a request's body as far as an answer depends on it. Raises `RequestError`."""

    def body(self, answer: Answer, asked: Asked, created: int) -> dict[str, Any]:
        """An answer that is not streamed."""

    def events(self, answer: Answer, asked: Asked, created: int) -> Iterator[bytes]:
        """The same answer as server-sent events, each whole."""

    def hear(self, data: Any, heard: Heard) -> None:
        """Find in one event's data, or in a whole body, what `Heard` is about. Never fails, whatever it is."""

    def models(self, name: str) -> dict[str, Any]:
        """The list of the one model that there is."""

    def error(self, fault: WireError) -> dict[str, Any]:
        """The body of an error answer."""


class Model(Protocol):
    """Where a route's answers come from. Called by several threads at once."""

    def serve(self, question: Question) -> Answer | Relay:
        """The next turn, or `WireError`."""

    def count_tokens(self, question: Question) -> int | Relay:
        """Input tokens that a request would use."""


class WireError(Exception):
    """A request that gets an error answer: HTTP `status`, and the protocol's `kind` and `code`.

    `is_final`: a client that tries again gets the same, and is told so.
    """

    def __init__(self, status: int, kind: str, code: str, message: str, is_final: bool = True) -> None:
        self.status, self.kind, self.code, self.message = status, kind, code, message
        self.is_final = is_final
        super().__init__(f"{code}: {message}")


class RequestError(WireError):
    """The candidate's doing: it asked for something that is not there or sent what cannot be read."""


class LimitError(RequestError):
    """A budget is spent. `of_run` tells the run's from the trial's own."""

    def __init__(self, code: str, message: str, of_run: bool) -> None:
        self.of_run = of_run
        super().__init__(429, "rate_limit_error", code, message)


class ScriptError(WireError):
    """What the script says, or does not say: told in `ModelTraffic.error`, but no excuse for a candidate."""


class ModelError(WireError):
    """The model's side failed. Only these can excuse a candidate."""


def malformed(message: str, code: str = "invalid_request") -> RequestError:
    """HTTP 400 for a request that cannot be understood."""
    return RequestError(400, "invalid_request_error", code, message)
