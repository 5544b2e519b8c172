"""Codex: the JSON lines of `codex exec --json`, one turn (G38-G40). Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from boxeval.agents.stream import (
    NO_MESSAGE,
    NO_USAGE,
    Calls,
    Output,
    Reading,
    StreamFault,
    events,
    exit_fault,
    faulty,
    message_of,
    usage_of,
    word,
)
from boxeval.spec.agent_record import CallEnd, TurnEnd

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
class _Turn:
    thread: str | None = None
    message: object = None
    usage: object = None
    completed: bool = False
    failed: str | None = None
    calls: Calls = field(default_factory=Calls)


def read(output: Output) -> Reading:
    """One turn: exactly one thread start, a completed turn, exit 0."""
    turn = _Turn()
    try:
        for number, event in events(output):
            _take(turn, number, event)
    except StreamFault as fault:
        return faulty(fault, turn.calls, turn.thread)
    end, reason = _end(turn, output)
    message, message_reason = NO_MESSAGE
    usage, usage_reason = NO_USAGE
    if turn.completed:
        message, message_reason = message_of(turn.message)
        usage, usage_reason = usage_of(turn.usage, USAGE)
    return Reading(
        end,
        reason,
        message,
        message_reason,
        turn.thread,
        usage,
        usage_reason,
        turn.calls.all,
        turn.calls.truncated,
    )


def _end(turn: _Turn, output: Output) -> tuple[TurnEnd, str | None]:
    if turn.failed is not None:
        return TurnEnd.FAILED, turn.failed
    if ended := exit_fault(output):
        return TurnEnd.FAILED, ended
    if turn.thread is None:
        return TurnEnd.INCOMPLETE, "no thread was started"
    if not turn.completed:
        return TurnEnd.INCOMPLETE, "no turn was completed"
    return TurnEnd.COMPLETED, None


def _take(turn: _Turn, number: int, event: dict[str, Any]) -> None:
    kind = event.get("type")
    if kind == "thread.started":
        if turn.thread is not None:
            raise StreamFault(f"line {number} starts a second thread")
        turn.thread = word(event.get("thread_id"))
    elif kind == "turn.completed":
        if turn.completed or turn.failed is not None:
            raise StreamFault(f"line {number} completes a turn that had ended")
        if turn.thread is None:
            raise StreamFault(f"line {number} completes a turn of no thread")
        turn.completed, turn.usage = True, event.get("usage")
    elif kind == "turn.failed":
        if turn.completed:
            raise StreamFault(f"line {number} fails a turn that was completed")
        error = event.get("error")
        said = error.get("message") if isinstance(error, dict) else None
        turn.failed = f"the turn failed: {word(said)}" if isinstance(said, str) else "the turn failed"
    elif kind in ("item.started", "item.completed") and isinstance(item := event.get("item"), dict):
        _take_item(turn, number, item, kind == "item.completed")


def _take_item(turn: _Turn, number: int, item: dict[str, Any], is_completed: bool) -> None:
    kind = item.get("type")
    if kind == "agent_message" and is_completed and not turn.completed:
        turn.message = item.get("text")
    elif isinstance(kind, str) and kind in TOOLS:
        turn.calls.begin(number, kind, item.get("id"))
        if is_completed:
            turn.calls.finish(item.get("id"), _ENDED.get(str(item.get("status")), CallEnd.UNKNOWN))
