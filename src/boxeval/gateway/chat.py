"""OpenAI Chat Completions on the wire.

The shapes follow OpenAI's API reference: `chat.completion`, `chat.completion.chunk`, `list` of `model`, and
`{"error": {message, type, param, code}}`. docs/gateway.md says which part of the protocol is spoken.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from boxeval.gateway.interface import Answer, Asked, Call, Heard, Said, Usage, WireError, malformed
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

DONE = b"data: [DONE]\n\n"
ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


class Chat:
    """`POST chat/completions`."""

    name = "chat"

    def read(self, data: Any) -> Asked:
        """See `Wire`. The messages are checked as far as a script can look at them."""
        data = read_object(data)
        said = _said(data.get("messages"))
        if data.get("n", 1) not in (1, None):
            raise malformed("n: only 1 choice is served")
        options = data.get("stream_options") or {}
        if not isinstance(options, dict):
            raise malformed("stream_options: must be an object")
        return Asked(
            model=data["model"],
            stream=bool(data.get("stream")),
            said=said,
            tools=frozenset(_tool_names(data.get("tools"))),
            include_usage=options.get("include_usage") is True,
        )

    def body(self, answer: Answer, asked: Asked, created: int) -> dict[str, Any]:
        """See `Wire`: a `chat.completion`."""
        told, refused = (None, answer.text) if answer.is_refusal else (answer.text, None)
        message: dict[str, Any] = {"role": "assistant", "content": told, "refusal": refused}
        if answer.calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": _function(call)} for call in answer.calls
            ]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish_reason(answer)}
        head = _head(answer, asked, created, "chat.completion")
        return {**head, "choices": [choice], "usage": _usage(answer)}

    def events(self, answer: Answer, asked: Asked, created: int) -> Iterator[bytes]:
        """See `Wire`: chunks, ended by `[DONE]`."""
        head = _head(answer, asked, created, "chat.completion.chunk")
        if asked.include_usage:
            head["usage"] = None
        for delta in _deltas(answer):
            yield event({**head, "choices": [_chunk(delta, None)]})
        yield event({**head, "choices": [_chunk({}, _finish_reason(answer))]})
        if asked.include_usage:
            yield event({**head, "choices": [], "usage": _usage(answer)})
        yield DONE

    def hear(self, data: Any, heard: Heard) -> None:
        """See `Wire`. Usage comes in the last chunk, or in every one from servers that repeat it."""
        if at(data, "usage"):
            usage = data["usage"]
            cached = count(usage, "prompt_tokens_details", "cached_tokens")
            heard.usage = Usage(count(usage, "prompt_tokens"), count(usage, "completion_tokens"), cached)
            heard.usages_told += 1
        for choice in listed(data, "choices"):
            message = at(choice, "delta") or at(choice, "message")
            hear_text(at(message, "content"), heard)
            heard.is_refusal |= bool(at(message, "refusal"))
            for call in listed(message, "tool_calls"):
                hear_call(call.get("id"), heard)
        hear_id(at(data, "id"), heard)
        heard.is_whole |= at(data, "object") == "chat.completion"

    def models(self, name: str) -> dict[str, Any]:
        """See `Wire`."""
        return {
            "object": "list",
            "data": [{"id": name, "object": "model", "created": 0, "owned_by": "boxeval"}],
        }

    def error(self, fault: WireError) -> dict[str, Any]:
        """See `Wire`."""
        return {
            "error": {"message": fault.message, "type": fault.kind, "param": None, "code": fault.code},
        }


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
        elif role == "tool":
            call_id = message.get("tool_call_id")
            said.append(
                Said(text_of(message.get("content"), name), call_id if isinstance(call_id, str) else "")
            )
        else:
            said.append(Said(text_of(message.get("content"), name)))
    return tuple(said)


def _tool_names(tools: Any) -> Iterator[str]:
    for tool in objects(tools, "tools"):
        function = tool.get("function")
        name = function.get("name") if isinstance(function, dict) else None
        if isinstance(name, str):
            yield name


def _deltas(answer: Answer) -> Iterator[dict[str, Any]]:
    """Pieces of the message as real servers send them: a call's arguments come after its name."""
    yield {"role": "assistant", "content": "" if answer.text is not None else None}
    if answer.text:
        yield {"refusal" if answer.is_refusal else "content": answer.text}
    for index, call in enumerate(answer.calls):
        function = {"name": call.name, "arguments": ""}
        yield {"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]}
        yield {"tool_calls": [{"index": index, "function": {"arguments": json.dumps(call.input)}}]}


def _function(call: Call) -> dict[str, str]:
    return {"name": call.name, "arguments": json.dumps(call.input)}


def _head(answer: Answer, asked: Asked, created: int, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{answer.number}", "object": kind, "created": created, "model": asked.model}


def _chunk(delta: dict[str, Any], finish_reason: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}


def _finish_reason(answer: Answer) -> str:
    return "tool_calls" if answer.calls else "stop"


def _usage(answer: Answer) -> dict[str, Any]:
    usage = answer.usage
    told: dict[str, Any] = {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
    }
    if usage.cache_read:
        told["prompt_tokens_details"] = {"cached_tokens": usage.cache_read}
    return told
