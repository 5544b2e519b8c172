"""opencode: the JSON lines of `opencode run --format json`. Pure.

A turn has steps; each ends with the tokens that it took, and the last one says that it stopped.
"""

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
    natural,
    word,
)
from boxeval.spec.agent_record import CallEnd, ClaimedUsage, TurnEnd
from boxeval.spec.base import SAFE

_ENDED = {"completed": CallEnd.COMPLETED, "error": CallEnd.FAILED}


@dataclass(slots=True)
class _Turn:
    session: str | None = None
    texts: list[str] = field(default_factory=list)
    """Of the step that runs."""
    finished: str | None = None
    error: str | None = None
    steps: list[object] = field(default_factory=list)
    calls: Calls = field(default_factory=Calls)


def read(output: Output) -> Reading:
    """One turn: one session, a last step that stopped, no error, exit 0."""
    turn = _Turn()
    try:
        for number, event in events(output):
            _take(turn, number, event)
    except StreamFault as fault:
        return faulty(fault, turn.calls, turn.session)
    end, reason = _end(turn, output)
    message, message_reason = NO_MESSAGE
    if end is TurnEnd.COMPLETED:
        message, message_reason = message_of("\n".join(turn.texts))
    usage, usage_reason = _usage(turn.steps)
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
    if turn.error is not None:
        return TurnEnd.FAILED, f"the turn failed: {turn.error}"
    if ended := exit_fault(output):
        return TurnEnd.FAILED, ended
    if turn.finished != "stop":
        return TurnEnd.INCOMPLETE, "no step says that the turn stopped"
    return TurnEnd.COMPLETED, None


def _take(turn: _Turn, number: int, event: dict[str, Any]) -> None:
    kind, part = event.get("type"), event.get("part")
    if "sessionID" in event:
        session = word(event["sessionID"])
        if turn.session not in (None, session):
            raise StreamFault(f"line {number} is of a second session")
        turn.session = session
    if kind == "error":
        error = event.get("error")
        turn.error = word(error.get("name")) if isinstance(error, dict) else "unknown"
    if not isinstance(part, dict):
        return
    if kind == "step_start":
        turn.texts, turn.finished = [], None
    elif kind == "text" and isinstance(part.get("text"), str):
        turn.texts.append(part["text"])
    elif kind == "step_finish":
        turn.finished = part.get("reason") if isinstance(part.get("reason"), str) else None
        turn.steps.append(part.get("tokens"))
    elif kind == "tool_use":
        state = part.get("state")
        status = state.get("status") if isinstance(state, dict) else None
        turn.calls.begin(number, part.get("tool"), part.get("callID"))
        if isinstance(status, str) and status in _ENDED:
            turn.calls.finish(part.get("callID"), _ENDED[status])


def _usage(steps: list[object]) -> tuple[ClaimedUsage | None, str | None]:
    """The sum over all steps; one that says nothing valid leaves no sum."""
    totals = dict.fromkeys(("input", "output", "read", "write"), 0)
    for number, tokens in enumerate(steps, start=1):
        if not isinstance(tokens, dict):
            return None, f"step {number} tells no usage"
        told = tokens.get("cache")
        cache: dict[str, Any] = told if isinstance(told, dict) else {}
        found = {
            "input": natural(tokens.get("input")),
            "output": natural(tokens.get("output")),
            "read": natural(cache.get("read", 0)),
            "write": natural(cache.get("write", 0)),
        }
        for name, value in found.items():
            if value is None:
                return None, f"the usage of step {number} is not valid"
            totals[name] += value
    if not steps:
        return None, "the agent tells no usage"
    whole = totals["input"] + totals["read"] + totals["write"]
    if max(whole, totals["output"]) > SAFE:
        return None, "the usage is not valid"
    return ClaimedUsage(
        input=whole, output=totals["output"], cache_read=totals["read"], cache_write=totals["write"]
    ), None
