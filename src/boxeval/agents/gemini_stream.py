"""Gemini CLI: the JSON lines of `gemini --output-format stream-json`. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from boxeval.agents.stream import (
    NO_MESSAGE,
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

USAGE = {"input": "input_tokens", "output": "output_tokens", "cache_read": "cached"}


@dataclass(slots=True)
class _Turn:
    session: str | None = None
    words: list[str] = field(default_factory=list)
    """What was said since the last tool call; a message comes in pieces."""
    result: dict[str, Any] | None = None
    calls: Calls = field(default_factory=Calls)


def read(output: Output) -> Reading:
    """One turn: one session, one result that is a success, exit 0."""
    turn = _Turn()
    try:
        for number, event in events(output):
            _take(turn, number, event)
    except StreamFault as fault:
        return faulty(fault, turn.calls, turn.session)
    end, reason = _end(turn, output)
    message, message_reason = NO_MESSAGE
    if end is TurnEnd.COMPLETED:
        message, message_reason = message_of("".join(turn.words))
    usage, usage_reason = usage_of(turn.result.get("stats") if turn.result else None, USAGE)
    return Reading(
        end,
        reason,
        message,
        message_reason,
        turn.session,
        usage,
        usage_reason,
        turn.calls.all,
        turn.calls.truncated,
    )


def _end(turn: _Turn, output: Output) -> tuple[TurnEnd, str | None]:
    if turn.result is not None and turn.result.get("status") != "success":
        return TurnEnd.FAILED, "the turn failed"
    if ended := exit_fault(output):
        return TurnEnd.FAILED, ended
    if turn.result is None or turn.session is None:
        return TurnEnd.INCOMPLETE, "there is no result of a session"
    return TurnEnd.COMPLETED, None


def _take(turn: _Turn, number: int, event: dict[str, Any]) -> None:
    kind = event.get("type")
    if kind == "init":
        if turn.session is not None:
            raise StreamFault(f"line {number} starts a second session")
        turn.session = word(event.get("session_id"))
    elif kind == "message" and event.get("role") == "assistant":
        if isinstance(event.get("content"), str):
            turn.words.append(event["content"])
    elif kind == "tool_use":
        turn.words = []
        turn.calls.begin(number, event.get("tool_name"), event.get("tool_id"))
    elif kind == "tool_result":
        failed = event.get("status") != "success"
        turn.calls.finish(event.get("tool_id"), CallEnd.FAILED if failed else CallEnd.COMPLETED)
    elif kind == "result":
        if turn.result is not None:
            raise StreamFault(f"line {number} is a second result")
        turn.result = event
