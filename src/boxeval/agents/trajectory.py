"""mini-swe-agent: the trajectory that it writes at its end, one JSON document. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from boxeval.agents.stream import (
    Calls,
    Output,
    Reading,
    StreamFault,
    exit_fault,
    faulty,
    message_of,
    natural,
    parse,
    text_of,
    word,
)
from boxeval.spec.agent_record import CallEnd, ClaimedUsage, TurnEnd
from boxeval.spec.base import SAFE

DONE = "Submitted"


def read(output: Output) -> Reading:
    """One turn: a trajectory that ends in a submission, exit 0."""
    calls = Calls()
    try:
        text = text_of(output)
        if not text.strip():
            return Reading(
                TurnEnd.INCOMPLETE, "no trajectory was written", message_reason="no trajectory was written"
            )
        document = parse(text, "the trajectory")
        if not isinstance(document, dict):
            raise StreamFault("the trajectory is not a JSON object")
        messages = [message for message in _list(document.get("messages")) if isinstance(message, dict)]
    except StreamFault as fault:
        return faulty(fault, calls)
    _calls(calls, messages)
    info = document.get("info")
    status = info.get("exit_status") if isinstance(info, dict) else None
    end, reason = TurnEnd.COMPLETED, None
    if ended := exit_fault(output):
        end, reason = TurnEnd.FAILED, ended
    elif status != DONE:
        end, reason = TurnEnd.FAILED, f"the agent ended with {word(status)}"
    message, message_reason = message_of(_last_words(messages, info))
    usage, usage_reason = _usage(messages)
    return Reading(
        end, reason, message, message_reason, None, usage, usage_reason, calls.all, calls.truncated
    )


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _calls(calls: Calls, messages: list[dict[str, Any]]) -> None:
    for number, message in enumerate(messages, start=1):
        for call in _list(message.get("tool_calls")):
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict):
                calls.begin(number, function.get("name"), call.get("id"))
        if message.get("role") == "tool":
            extra = message.get("extra")
            code = extra.get("returncode") if isinstance(extra, dict) else None
            if type(code) is int:
                calls.finish(message.get("tool_call_id"), CallEnd.COMPLETED if code == 0 else CallEnd.FAILED)


def _last_words(messages: list[dict[str, Any]], info: object) -> str | None:
    """What was submitted, else the last text that came beside a call."""
    submitted = info.get("submission") if isinstance(info, dict) else None
    if isinstance(submitted, str) and submitted.strip():
        return submitted
    for message in reversed(messages):
        content = message.get("content")
        if message.get("role") == "assistant" and isinstance(content, str) and content.strip():
            return content
    return None


def _responses(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for message in messages:
        extra = message.get("extra")
        response = extra.get("response") if isinstance(extra, dict) else None
        if message.get("role") == "assistant":
            yield response if isinstance(response, dict) else {}


def _usage(messages: list[dict[str, Any]]) -> tuple[ClaimedUsage | None, str | None]:
    read, written, count = 0, 0, 0
    for response in _responses(messages):
        usage = response.get("usage")
        count += 1
        sent = natural(usage.get("prompt_tokens")) if isinstance(usage, dict) else None
        got = natural(usage.get("completion_tokens")) if isinstance(usage, dict) else None
        if sent is None or got is None:
            return None, f"answer {count} tells no valid usage"
        read, written = read + sent, written + got
    if not count or max(read, written) > SAFE:
        return None, "the agent tells no usage" if not count else "the usage is not valid"
    return ClaimedUsage(input=read, output=written), None
