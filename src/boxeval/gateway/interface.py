"""What a model answers with, and the two ways a request can fail, told apart by whose fault it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

PLACEHOLDER_KEY = "boxeval-placeholder"
"""The only API key that a box ever sees. It opens nothing: the token in a route's path is what counts."""


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call that the model asks for. `arguments` is a JSON object as text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Answer:
    """One served turn: text or calls, and what it used. `number` counts the turns of its route from 1."""

    number: int
    text: str | None
    calls: tuple[Call, ...]
    input_tokens: int
    output_tokens: int
    cost_usd: float | None


class Model(Protocol):
    """Where a route's answers come from. Called by one thread at a time."""

    def answer(self) -> Answer:
        """The next turn, or `ModelError`."""


class WireError(Exception):
    """A request that gets an error answer: HTTP `status`, and the protocol's `kind` and `code`."""

    def __init__(self, status: int, kind: str, code: str, message: str) -> None:
        self.status, self.kind, self.code, self.message = status, kind, code, message
        super().__init__(f"{code}: {message}")


class RequestError(WireError):
    """The candidate's doing: it asked for something that is not there or sent what cannot be read."""


class ModelError(WireError):
    """The model's side failed. Only these reach `ModelTraffic.error`, since they can excuse a candidate."""


def malformed(message: str, code: str = "invalid_request") -> RequestError:
    """HTTP 400 for a request that cannot be understood."""
    return RequestError(400, "invalid_request_error", code, message)
