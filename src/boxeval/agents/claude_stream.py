"""Claude Code: the JSON lines of `claude -p --output-format stream-json`. Pure."""

from __future__ import annotations

from collections.abc import Iterator
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
from boxeval.spec.agent_record import CallEnd, ClaimedUsage, TurnEnd
from boxeval.spec.base import SAFE

USAGE = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
}


@dataclass(slots=True)
class _Turn:
    session: str | None = None
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
    usage, usage_reason = NO_USAGE
    if turn.result is not None:
        if not turn.result.get("is_error"):
            message, message_reason = message_of(turn.result.get("result"))
        usage, usage_reason = _whole(
            *usage_of(turn.result.get("usage"), USAGE, turn.result.get("total_cost_usd"))
        )
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


def _whole(usage: ClaimedUsage | None, reason: str | None) -> tuple[ClaimedUsage | None, str | None]:
    """This protocol counts cached input apart; a record has it in the input."""
    if usage is None:
        return None, reason
    cached = (usage.cache_read or 0) + (usage.cache_write or 0)
    if usage.input + cached > SAFE:
        return None, "the usage is not valid"
    return usage.model_copy(update={"input": usage.input + cached}), None


def _end(turn: _Turn, output: Output) -> tuple[TurnEnd, str | None]:
    result = turn.result
    if result is not None and (result.get("subtype") != "success" or result.get("is_error")):
        return TurnEnd.FAILED, f"the turn failed: {word(result.get('subtype'))}"
    if ended := exit_fault(output):
        return TurnEnd.FAILED, ended
    if turn.session is None:
        return TurnEnd.INCOMPLETE, "no session was started"
    if result is None:
        return TurnEnd.INCOMPLETE, "there is no result"
    return TurnEnd.COMPLETED, None


def _take(turn: _Turn, number: int, event: dict[str, Any]) -> None:
    kind = event.get("type")
    if kind == "system" and event.get("subtype") == "init":
        session = word(event.get("session_id"))
        if turn.session not in (None, session):
            raise StreamFault(f"line {number} starts a second session")
        turn.session = session
    elif kind == "result":
        if turn.result is not None:
            raise StreamFault(f"line {number} is a second result")
        turn.result = event
        for denied in _objects(event.get("permission_denials")):
            turn.calls.finish(denied.get("tool_use_id"), CallEnd.BLOCKED)
    elif kind in ("assistant", "user"):
        message = event.get("message")
        for block in _objects(message.get("content") if isinstance(message, dict) else None):
            if block.get("type") == "tool_use" and kind == "assistant":
                turn.calls.begin(number, block.get("name"), block.get("id"))
            elif block.get("type") == "tool_result" and kind == "user":
                failed = block.get("is_error") is True
                turn.calls.finish(block.get("tool_use_id"), CallEnd.FAILED if failed else CallEnd.COMPLETED)


def _objects(value: object) -> Iterator[dict[str, Any]]:
    """The objects of a list; of anything else none."""
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict):
            yield item
