"""Anthropic Messages on the wire.

The shapes follow Anthropic's API reference: a `message` of content blocks, its stream of named events, and
`{"type": "error", "error": {type, message}}`. An error's code stands in front of its message, where people see it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from boxeval.gateway.interface import Answer, Asked, Heard, Said, Usage, WireError, malformed
from boxeval.gateway.json_body import (
    at,
    count,
    hear_call,
    hear_id,
    hear_text,
    listed,
    objects,
    read_object,
    role_of,
    text_of,
)
from boxeval.gateway.sse import event

ROLES = frozenset({"user", "assistant", "system"})
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class Messages:
    """`POST messages`."""

    name = "messages"

    def read(self, data: Any) -> Asked:
        """See `Wire`."""
        data = read_object(data)
        tools = (tool.get("name") for tool in objects(data.get("tools"), "tools"))
        return Asked(
            model=data["model"],
            stream=bool(data.get("stream")),
            said=_said(data.get("messages")),
            tools=frozenset(name for name in tools if isinstance(name, str)),
        )

    def body(self, answer: Answer, asked: Asked, created: int) -> dict[str, Any]:  # noqa: ARG002 - a message has no date
        """See `Wire`: a whole `message`."""
        return {
            **_head(answer, asked),
            "content": list(_blocks(answer)),
            "stop_reason": _stop_reason(answer),
            "usage": _usage(answer.usage),
        }

    def events(self, answer: Answer, asked: Asked, created: int) -> Iterator[bytes]:  # noqa: ARG002
        """See `Wire`: from `message_start` to `message_stop`."""
        begun = {**_usage(answer.usage), "output_tokens": 0}
        start = {**_head(answer, asked), "content": [], "stop_reason": None, "usage": begun}
        told: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
        for index, block in enumerate(_blocks(answer)):
            place = {"index": index}
            empty, delta = _opened(block)
            told += [
                {"type": "content_block_start", **place, "content_block": empty},
                {"type": "content_block_delta", **place, "delta": delta},
                {"type": "content_block_stop", **place},
            ]
        end = {"stop_reason": _stop_reason(answer), "stop_sequence": None}
        told.append({"type": "message_delta", "delta": end, "usage": {"output_tokens": answer.usage.output}})
        told.append({"type": "message_stop"})
        for one in told:
            yield event(one, one["type"])

    def hear(self, data: Any, heard: Heard) -> None:
        """See `Wire`. Input is told at the start, output so far with each `message_delta`."""
        kind = at(data, "type")
        if kind == "message_start" or kind == "message":
            message = data if kind == "message" else data.get("message")
            hear_id(at(message, "id"), heard)
            heard.usages_told += 1
            _hear_usage(at(message, "usage"), heard)
            for block in listed(message, "content"):
                _hear_block(block, heard)
            heard.is_whole |= kind == "message"
            heard.is_refusal |= at(message, "stop_reason") == "refusal"
        elif kind == "message_delta":
            heard.is_refusal |= at(data, "delta", "stop_reason") == "refusal"
            _hear_usage(data.get("usage"), heard)
        elif kind == "content_block_start":
            _hear_block(data.get("content_block"), heard)
        elif kind == "content_block_delta":
            hear_text(at(data, "delta", "text"), heard)
        heard.is_whole |= kind == "message_stop"

    def models(self, name: str) -> dict[str, Any]:
        """See `Wire`."""
        model = {"type": "model", "id": name, "display_name": name, "created_at": "1970-01-01T00:00:00Z"}
        return {"data": [model], "has_more": False, "first_id": name, "last_id": name}

    def error(self, fault: WireError) -> dict[str, Any]:
        """See `Wire`."""
        kind = _ERRORS.get(fault.status, "api_error" if fault.status >= 500 else "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": f"{fault.code}: {fault.message}"}}


def _hear_block(block: Any, heard: Heard) -> None:
    if at(block, "type") == "tool_use":
        hear_call(at(block, "id"), heard)


def _hear_usage(usage: Any, heard: Heard) -> None:
    """What is told replaces what was told before; what is not stays."""
    known = _usage(heard.usage or Usage(0, 0))
    known |= {name: count(usage, name) for name in known if at(usage, name) is not None}
    cached = known["cache_read_input_tokens"], known["cache_creation_input_tokens"]
    heard.usage = Usage(known["input_tokens"] + sum(cached), known["output_tokens"], *cached)


def _said(messages: Any) -> tuple[Said, ...]:
    """What came after the last message of the assistant's."""
    if not isinstance(messages, list) or not messages:
        raise malformed("messages: must be a list of at least one message")
    said: list[Said] = []
    for index, message in enumerate(messages):
        name = f"messages[{index}]"
        role = role_of(message, ROLES, name)
        if role == "assistant":
            said = []
        else:
            said += _parts(message.get("content"), name)
    return tuple(said)


def _parts(content: Any, name: str) -> Iterator[Said]:
    if isinstance(content, str):
        yield Said(content)
        return
    for block in objects(content, f"{name}.content"):
        if block.get("type") == "tool_result":
            call_id = block.get("tool_use_id")
            yield Said(
                text_of(block.get("content"), name),
                call_id if isinstance(call_id, str) else "",
                block.get("is_error") is True,
            )
        elif isinstance(block.get("text"), str):
            yield Said(block["text"])


def _blocks(answer: Answer) -> Iterator[dict[str, Any]]:
    if answer.text is not None:
        yield {"type": "text", "text": answer.text}
    for call in answer.calls:
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.input)}


def _opened(block: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A block as it begins, and the one delta that makes it whole."""
    if block["type"] == "text":
        return {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
    return {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}


def _head(answer: Answer, asked: Asked) -> dict[str, Any]:
    return {
        "id": f"msg_{answer.number}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "stop_sequence": None,
    }


def _stop_reason(answer: Answer) -> str:
    if answer.is_refusal:
        return "refusal"
    return "tool_use" if answer.calls else "end_turn"


def _usage(usage: Usage) -> dict[str, int]:
    """Here the cached tokens stand beside the others, and not among them."""
    return {
        "input_tokens": usage.input - usage.cache_read - usage.cache_write,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    }
