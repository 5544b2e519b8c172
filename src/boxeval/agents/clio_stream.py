"""clio-coder: the JSON lines of `clio-coder run --json`, and the documents of its context commands. Pure.

boxeval has no image of this agent, so these are written from its public description and tested on journals made here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from boxeval.agents.stream import (
    Calls,
    Output,
    Reading,
    StreamFault,
    exit_fault,
    faulty,
    natural,
    parse,
    text_of,
    usage_of,
    word,
)
from boxeval.agents.turn_stream import Turn, Usage, read_turn
from boxeval.spec.agent_record import CallEnd, ClaimedUsage, ContextIndex, TurnEnd
from boxeval.spec.base import SAFE

USAGE = {"input": "input", "output": "output", "cache_read": "cacheRead", "cache_write": "cacheWrite"}
_ENDED = {"ok": CallEnd.COMPLETED, "error": CallEnd.FAILED, "blocked": CallEnd.BLOCKED}


@dataclass(slots=True)
class _Turn(Turn):
    message: object = None
    ended: bool = False
    usages: list[object] = field(default_factory=list)
    """Of each assistant message, one a provider response."""
    responses: set[str] = field(default_factory=set)

    def failure(self) -> str | None:
        return None

    def gap(self) -> str | None:
        return None if self.ended else "the stream does not say that the agent ended"

    def words(self) -> object:
        return self.message

    def usage(self) -> Usage:
        return _usage(self.usages)

    def take(self, number: int, event: dict[str, Any]) -> None:
        kind, payload = event.get("type"), event.get("payload")
        if kind == "agent_end":
            self.ended = True
        elif kind == "tool_execution_start":
            self.calls.begin(number, event.get("toolName"), event.get("toolCallId"))
        elif kind == "tool_execution_end":
            self.calls.begin(number, event.get("toolName"), event.get("toolCallId"))
            told = CallEnd.FAILED if event.get("isError") is True else CallEnd.COMPLETED
            self.calls.finish(event.get("toolCallId"), _ENDED.get(str(event.get("outcome")), told))
        elif kind == "clio_tool_finish" and isinstance(payload, dict):
            self.calls.begin(number, payload.get("toolName"), payload.get("toolCallId"))
            self.calls.finish(
                payload.get("toolCallId"), _ENDED.get(str(payload.get("outcome")), CallEnd.UNKNOWN)
            )
        elif kind == "message_end":
            message = event.get("message")
            if isinstance(message, dict) and message.get("role") == "assistant":
                _take_message(self, message)


def read(output: Output) -> Reading:
    """One turn: an agent that ended, exit 0."""
    return read_turn(_Turn(), output)


def _take_message(turn: _Turn, message: dict[str, Any]) -> None:
    text = _words(message.get("content"))
    turn.message = text or turn.message
    response = message.get("responseId")
    if isinstance(response, str) and response in turn.responses:
        return  # one response told twice is used once
    if isinstance(response, str):
        turn.responses.add(response)
    turn.usages.append(message.get("usage"))


def _words(content: object) -> str | None:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str)) or None


def _usage(usages: list[object]) -> tuple[ClaimedUsage | None, str | None]:
    totals = dict.fromkeys(USAGE, 0)
    for number, told in enumerate(usages, start=1):
        usage, reason = usage_of(told, USAGE)
        if usage is None:
            return None, f"message {number}: {reason}"
        for name in totals:
            totals[name] += getattr(usage, name) or 0
    totals["input"] += totals["cache_read"] + totals["cache_write"]
    if not usages or max(totals.values()) > SAFE:
        return None, "the usage is not valid" if usages else "the agent tells no usage"
    return ClaimedUsage(**totals), None


def read_context(output: Output) -> Reading:
    """`context index` and `context init`: one JSON document, exit 0. There is no conversation in it."""
    nothing = "a context command has no final message"
    try:
        document = parse(text_of(output), "the answer")
        if not isinstance(document, dict):
            raise StreamFault("the answer is not a JSON object")
    except StreamFault as fault:
        if ended := exit_fault(output):
            return Reading(TurnEnd.FAILED, ended, message_reason=nothing, usage_reason=nothing)
        return faulty(fault, Calls())
    end, reason = TurnEnd.COMPLETED, None
    if ended := exit_fault(output):
        end, reason = TurnEnd.FAILED, ended
    index = ContextIndex(
        indexed_files=natural(document.get("indexedSourceFiles")),
        coverage=_ratio(document.get("coverage")),
        structural_hash=_hash(document.get("structuralHash")),
        digest_tokens=natural(document.get("digestTokens")),
    )
    return Reading(end, reason, message_reason=nothing, usage_reason=nothing, context=index)


def _ratio(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value) if 0 <= value <= 1 else None


def _hash(value: object) -> str | None:
    return word(value) if isinstance(value, str) and value else None
