"""Codex: what `codex app-server` said to the client in the image, one or more turns of one thread (G41). Pure."""

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
    word,
)
from boxeval.spec.agent_record import CallEnd, TurnEnd

TOOLS = frozenset(
    {"commandExecution", "fileChange", "mcpToolCall", "dynamicToolCall", "collabAgentToolCall", "webSearch"}
)
_ENDED = {"completed": CallEnd.COMPLETED, "failed": CallEnd.FAILED, "declined": CallEnd.BLOCKED}


@dataclass(slots=True)
class _Turn:
    thread: str | None = None
    message: object = None
    status: object = None
    calls: Calls = field(default_factory=Calls)


def read(output: Output) -> Reading:
    """The root thread's turns: the last of them is completed, exit 0. This stream has no usage that is the turn's."""
    turn = _Turn()
    try:
        for number, event in events(output):
            _take(turn, number, event)
    except StreamFault as fault:
        return faulty(fault, turn.calls, turn.thread)
    end, reason = TurnEnd.COMPLETED, None
    if turn.status not in ("completed", None):
        end, reason = TurnEnd.FAILED, f"the turn ended as {word(turn.status)}"
    elif ended := exit_fault(output):
        end, reason = TurnEnd.FAILED, ended
    elif turn.thread is None or turn.status is None:
        end, reason = TurnEnd.INCOMPLETE, "no turn of the root thread was completed"
    message, message_reason = NO_MESSAGE
    if end is TurnEnd.COMPLETED:
        message, message_reason = message_of(turn.message)
    return Reading(
        end,
        reason,
        message,
        message_reason,
        turn.thread,
        usage_reason="the app-server's stream tells no usage of a turn",
        calls=turn.calls.all,
        calls_truncated=turn.calls.truncated,
    )


def _take(turn: _Turn, number: int, event: dict[str, Any]) -> None:
    method, params = event.get("method"), event.get("params")
    if not isinstance(params, dict):
        return
    if method == "boxeval/thread":
        if turn.thread is not None:
            raise StreamFault(f"line {number} starts a second thread")
        turn.thread = word(params.get("threadId"))
        return
    if turn.thread is None or params.get("threadId") != turn.thread:
        return
    if method == "turn/started":
        turn.message, turn.status = None, None
    elif method == "turn/completed":
        ended = params.get("turn")
        if turn.status is not None:
            raise StreamFault(f"line {number} completes a turn that had ended")
        turn.status = ended.get("status") if isinstance(ended, dict) else "unknown"
    elif method in ("item/started", "item/completed") and isinstance(item := params.get("item"), dict):
        kind = item.get("type")
        if kind == "agentMessage" and method == "item/completed":
            turn.message = item.get("text")
        elif isinstance(kind, str) and kind in TOOLS:
            turn.calls.begin(number, kind, item.get("id"))
            status = item.get("status")
            if method == "item/completed" and isinstance(status, str):
                turn.calls.finish(item.get("id"), _ENDED.get(status, CallEnd.UNKNOWN))
