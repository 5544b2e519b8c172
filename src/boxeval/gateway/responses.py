"""OpenAI Responses on the wire.

The shapes follow OpenAI's API reference: a `response` with output items, and the named events of its stream, each
with a `sequence_number`. A tool that the request declares as `custom` takes text: its call is a `custom_tool_call`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from boxeval.gateway.chat import Chat
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

Item = dict[str, Any]
ROLES = frozenset({"system", "developer", "user", "assistant"})
_RESULTS = (
    "function_call_output",
    "custom_tool_call_output",
    "local_shell_call_output",
    "mcp_tool_call_output",
)
_ENDS = ("response.completed", "response.incomplete", "response.failed")


class Responses:
    """`POST responses`."""

    name = "responses"

    def read(self, data: Any) -> Asked:
        """See `Wire`. What the model said before is not looked at."""
        data = read_object(data)
        tools = list(_tools(data.get("tools")))
        return Asked(
            model=data["model"],
            stream=bool(data.get("stream")),
            said=_said(data.get("input")),
            tools=frozenset(name for _, name, _ in tools),
            custom_tools=frozenset(name for kind, name, _ in tools if kind == "custom"),
            namespaces={name: space for _, name, space in tools if space is not None},
        )

    def body(self, answer: Answer, asked: Asked, created: int) -> dict[str, Any]:
        """See `Wire`: a completed `response`."""
        items = [done for _, done, _ in _items(answer, asked)]
        return _response(answer, asked, created, "completed", items)

    def events(self, answer: Answer, asked: Asked, created: int) -> Iterator[bytes]:
        """See `Wire`: from `response.created` to `response.completed`."""
        begun = _response(answer, asked, created, "in_progress", [])
        told: list[Item] = [
            {"type": f"response.{name}", "response": begun} for name in ("created", "in_progress")
        ]
        done: list[Item] = []
        for index, (started, whole, pieces) in enumerate(_items(answer, asked)):
            place = {"output_index": index}
            told.append({"type": "response.output_item.added", **place, "item": started})
            told += [{**piece, **place, "item_id": whole["id"]} for piece in pieces]
            told.append({"type": "response.output_item.done", **place, "item": whole})
            done.append(whole)
        final = _response(answer, asked, created, "completed", done)
        told.append({"type": "response.completed", "response": final})
        for number, one in enumerate(told):
            yield event({**one, "sequence_number": number}, one["type"])

    def hear(self, data: Any, heard: Heard) -> None:
        """See `Wire`. Usage comes with the event that ends the response, which has the response itself."""
        kind = at(data, "type")
        if kind == "response.output_text.delta":
            hear_text(data.get("delta"), heard)
        elif kind == "response.output_item.done":
            _hear_item(data.get("item"), heard)
        elif kind in _ENDS:
            self._hear_response(data.get("response"), heard)
        elif at(data, "object") == "response":
            for item in listed(data, "output"):
                _hear_item(item, heard)
            self._hear_response(data, heard)

    def _hear_response(self, response: Any, heard: Heard) -> None:
        heard.is_whole = True
        hear_id(at(response, "id"), heard)
        if usage := at(response, "usage"):
            details = at(usage, "input_tokens_details")
            heard.usage = Usage(
                count(usage, "input_tokens"),
                count(usage, "output_tokens"),
                count(details, "cached_tokens"),
                count(details, "cache_write_tokens"),
            )
            heard.usages_told += 1

    def models(self, name: str) -> dict[str, Any]:
        """See `Wire`: the same list as that of Chat Completions."""
        return Chat().models(name)

    def error(self, fault: WireError) -> dict[str, Any]:
        """See `Wire`: the same error as that of Chat Completions."""
        return Chat().error(fault)


def _hear_item(item: Any, heard: Heard) -> None:
    heard.is_refusal |= any(part.get("type") == "refusal" for part in listed(item, "content"))
    if str(at(item, "type")).endswith("_call"):
        hear_call(at(item, "call_id") or at(item, "id"), heard)


def _said(sent: Any) -> tuple[Said, ...]:
    """What came after the last item of the model's own."""
    if isinstance(sent, str):
        return (Said(sent),)
    if not isinstance(sent, list) or not sent:
        raise malformed("input: must be a string, or a list of at least one item")
    said: list[Said] = []
    for index, item in enumerate(objects(sent, "input")):
        name, kind = f"input[{index}]", item.get("type", "message")
        if kind in _RESULTS:
            call_id = item.get("call_id")
            said.append(Said(text_of(item.get("output"), name), call_id if isinstance(call_id, str) else ""))
        elif kind != "message":
            said = []  # a call, reasoning, or another item that a model makes
        elif role_of(item, ROLES, name) == "assistant":
            said = []
        else:
            said.append(Said(text_of(item.get("content"), name)))
    return tuple(said)


def _tools(tools: Any, space: str | None = None) -> Iterator[tuple[Any, str, str | None]]:
    """Kind, name and namespace of every tool. Tools of the provider's own go by their kind."""
    for tool in objects(tools, "tools"):
        kind, name = tool.get("type"), tool.get("name")
        if isinstance(tool.get("tools"), list):
            yield from _tools(tool["tools"], name if isinstance(name, str) else None)
        elif isinstance(name, str):
            yield kind, name, space
        elif isinstance(kind, str):
            yield kind, kind, space


def _items(answer: Answer, asked: Asked) -> Iterator[tuple[Item, Item, list[Item]]]:
    """Each output item as it begins, as it ends, and the events between, without their places."""
    if answer.text is not None:
        yield _message(answer)
    for number, call in enumerate(answer.calls, start=1):
        item_id = f"fc_{answer.number}_{number}"
        started, whole, pieces = (_custom if call.name in asked.custom_tools else _function)(call, item_id)
        space = asked.namespaces.get(call.name)
        told = {} if space is None else {"namespace": space}
        yield {**started, **told}, {**whole, **told}, pieces


def _message(answer: Answer) -> tuple[Item, Item, list[Item]]:
    kind, key = ("refusal", "refusal") if answer.is_refusal else ("output_text", "text")
    more: Item = {} if answer.is_refusal else {"annotations": []}
    empty, part = {"type": kind, key: "", **more}, {"type": kind, key: answer.text, **more}
    head = {"id": f"msg_{answer.number}", "type": "message", "role": "assistant"}
    place = {"content_index": 0}
    pieces: list[Item] = [
        {"type": "response.content_part.added", **place, "part": empty},
        {"type": f"response.{kind}.delta", **place, "delta": answer.text},
        {"type": f"response.{kind}.done", **place, key: answer.text},
        {"type": "response.content_part.done", **place, "part": part},
    ]
    started: Item = {**head, "status": "in_progress", "content": []}
    return started, {**head, "status": "completed", "content": [part]}, pieces


def _function(call: Call, item_id: str) -> tuple[Item, Item, list[Item]]:
    arguments = json.dumps(call.input)
    head = {"id": item_id, "type": "function_call", "call_id": call.id, "name": call.name}
    pieces: list[Item] = [
        {"type": "response.function_call_arguments.delta", "delta": arguments},
        {"type": "response.function_call_arguments.done", "arguments": arguments},
    ]
    started = {**head, "status": "in_progress", "arguments": ""}
    return started, {**head, "status": "completed", "arguments": arguments}, pieces


def _custom(call: Call, item_id: str) -> tuple[Item, Item, list[Item]]:
    words = call.input.get("input")
    sent = words if isinstance(words, str) else json.dumps(call.input)
    head = {"id": item_id, "type": "custom_tool_call", "call_id": call.id, "name": call.name}
    pieces: list[Item] = [
        {"type": "response.custom_tool_call_input.delta", "delta": sent},
        {"type": "response.custom_tool_call_input.done", "input": sent},
    ]
    return (
        {**head, "status": "in_progress", "input": ""},
        {**head, "status": "completed", "input": sent},
        pieces,
    )


def _response(answer: Answer, asked: Asked, created: int, status: str, output: list[Item]) -> dict[str, Any]:
    return {
        "id": f"resp_{answer.number}",
        "object": "response",
        "created_at": created,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": asked.model,
        "output": output,
        "parallel_tool_calls": True,
        "usage": _usage(answer.usage) if status == "completed" else None,
    }


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input + usage.output,
    }
