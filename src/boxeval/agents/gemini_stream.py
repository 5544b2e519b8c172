"""Gemini CLI: the JSON lines of `gemini --output-format stream-json`. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from boxeval.agents.stream import (
    Output,
    Reading,
    StreamFault,
    usage_of,
    word,
)
from boxeval.agents.turn_stream import Turn, Usage, read_turn
from boxeval.spec.agent_record import CallEnd

USAGE = {"input": "input_tokens", "output": "output_tokens", "cache_read": "cached"}


@dataclass(slots=True)
class _Turn(Turn):
    said: list[str] = field(default_factory=list)
    """Since the last tool call; a message comes in pieces."""
    result: dict[str, Any] | None = None

    def failure(self) -> str | None:
        return (
            "the turn failed" if self.result is not None and self.result.get("status") != "success" else None
        )

    def gap(self) -> str | None:
        is_done = self.result is not None and self.session is not None
        return None if is_done else "there is no result of a session"

    def words(self) -> object:
        return "".join(self.said)

    def usage(self) -> Usage:
        return usage_of(self.result.get("stats") if self.result else None, USAGE)

    def take(self, number: int, event: dict[str, Any]) -> None:
        kind = event.get("type")
        if kind == "init":
            if self.session is not None:
                raise StreamFault(f"line {number} starts a second session")
            self.session = word(event.get("session_id"))
        elif kind == "message" and event.get("role") == "assistant":
            if isinstance(event.get("content"), str):
                self.said.append(event["content"])
        elif kind == "tool_use":
            self.said = []
            self.calls.begin(number, event.get("tool_name"), event.get("tool_id"))
        elif kind == "tool_result":
            failed = event.get("status") != "success"
            self.calls.finish(event.get("tool_id"), CallEnd.FAILED if failed else CallEnd.COMPLETED)
        elif kind == "result":
            if self.result is not None:
                raise StreamFault(f"line {number} is a second result")
            self.result = event


def read(output: Output) -> Reading:
    """One turn: one session, one result that is a success, exit 0."""
    return read_turn(_Turn(), output)
