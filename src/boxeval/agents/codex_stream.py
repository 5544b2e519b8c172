"""Codex: the JSON lines of `codex exec --json`, one turn (G38-G40). Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from boxeval.agents.stream import (
    NO_USAGE,
    Output,
    Reading,
    StreamFault,
    usage_of,
    word,
)
from boxeval.agents.turn_stream import Turn, Usage, read_turn
from boxeval.spec.agent_record import CallEnd

USAGE = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cached_input_tokens",
    "cache_write": "cache_write_input_tokens",
}
TOOLS = frozenset({"command_execution", "file_change", "mcp_tool_call", "web_search", "collab_tool_call"})
"""Kinds of items that are tool calls. Others are words, plans and notes."""
_ENDED = {"completed": CallEnd.COMPLETED, "failed": CallEnd.FAILED, "declined": CallEnd.BLOCKED}


@dataclass(slots=True)
class _Turn(Turn):
    message: object = None
    told: object = None
    """Its usage."""
    completed: bool = False
    failed: str | None = None

    def failure(self) -> str | None:
        return self.failed

    def gap(self) -> str | None:
        if self.session is None:
            return "no thread was started"
        return None if self.completed else "no turn was completed"

    def words(self) -> object:
        return self.message

    def usage(self) -> Usage:
        return usage_of(self.told, USAGE) if self.completed else NO_USAGE

    def take(self, number: int, event: dict[str, Any]) -> None:
        kind = event.get("type")
        if kind == "thread.started":
            if self.session is not None:
                raise StreamFault(f"line {number} starts a second thread")
            self.session = word(event.get("thread_id"))
        elif kind == "turn.completed":
            if self.completed or self.failed is not None:
                raise StreamFault(f"line {number} completes a turn that had ended")
            if self.session is None:
                raise StreamFault(f"line {number} completes a turn of no thread")
            self.completed, self.told = True, event.get("usage")
        elif kind == "turn.failed":
            if self.completed:
                raise StreamFault(f"line {number} fails a turn that was completed")
            error = event.get("error")
            said = error.get("message") if isinstance(error, dict) else None
            self.failed = f"the turn failed: {word(said)}" if isinstance(said, str) else "the turn failed"
        elif kind in ("item.started", "item.completed") and isinstance(item := event.get("item"), dict):
            _take_item(self, number, item, kind == "item.completed")


def read(output: Output) -> Reading:
    """One turn: exactly one thread start, a completed turn, exit 0."""
    return read_turn(_Turn(), output)


def _take_item(turn: _Turn, number: int, item: dict[str, Any], is_completed: bool) -> None:
    kind = item.get("type")
    if kind == "agent_message" and is_completed and not turn.completed:
        turn.message = item.get("text")
    elif isinstance(kind, str) and kind in TOOLS:
        turn.calls.begin(number, kind, item.get("id"))
        if is_completed:
            turn.calls.finish(item.get("id"), _ENDED.get(str(item.get("status")), CallEnd.UNKNOWN))
