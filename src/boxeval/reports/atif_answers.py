"""What a model said in one answer, whichever protocol it came in, whole or streamed. Pure.

An answer is what the record of the traffic has: the whole body of a scripted model, or the text that a provider sent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from boxeval.gateway.interface import RequestError
from boxeval.gateway.json_body import read_json
from boxeval.gateway.sse import EventReader

Body = dict[str, Any]


def parts_of(answer: Any) -> list[Body]:
    """The whole body, or the events of a stream."""
    if isinstance(answer, dict):
        return [answer]
    if not isinstance(answer, str):
        return []
    if answer.lstrip().startswith("{"):
        return _objects([answer.encode("utf-8", "surrogatepass")])
    return _objects(EventReader().feed(answer.encode("utf-8", "backslashreplace")))


def text_of(parts: Iterable[Body]) -> str:
    """The words of an answer."""
    said = _Said()
    for part in parts:
        said.take(part)
    return "\n".join(filter(None, map("".join, said.blocks)))


def calls_of(parts: Iterable[Body]) -> list[Body]:
    """Its tool calls in ATIF's form, in the order in which they began."""
    said = _Said()
    for part in parts:
        said.take(part)
    return [_call(call) for call in said.calls.values()]


@dataclass(slots=True)
class _Call:
    id: object = None
    name: object = None
    given: object = None
    pieces: list[str] = field(default_factory=list)
    """Of arguments that come bit by bit."""


@dataclass(slots=True)
class _Said:
    blocks: list[list[str]] = field(default_factory=lambda: [[]])
    """Pieces of each block of text."""
    calls: dict[object, _Call] = field(default_factory=dict)

    def take(self, part: Body) -> None:
        for choice in dicts(part.get("choices")):  # Chat Completions
            self._chat(choice)
        for item in dicts(part.get("output")):  # Responses, whole
            self._item(item)
        if part.get("type") == "response.output_item.done" and isinstance(part.get("item"), dict):
            self._item(part["item"])
        for block in dicts(part.get("content")):  # Messages, whole
            self._block(block, len(self.calls))
        self._message_event(part)
        for candidate in dicts(part.get("candidates")):  # Gemini
            content = candidate.get("content")
            for piece in dicts(content.get("parts")) if isinstance(content, dict) else ():
                self._say(piece.get("text"))
                if isinstance(call := piece.get("functionCall"), dict):
                    self.calls[len(self.calls)] = _Call(call.get("id"), call.get("name"), call.get("args"))

    def _say(self, text: object) -> None:
        if isinstance(text, str):
            self.blocks[-1].append(text)

    def _chat(self, choice: Body) -> None:
        whole, delta = choice.get("message"), choice.get("delta")
        for place, message in (("message", whole), ("delta", delta)):
            if not isinstance(message, dict):
                continue
            self._say(message.get("content"))
            for number, told in enumerate(dicts(message.get("tool_calls"))):
                index = told.get("index") if place == "delta" else number
                function = told.get("function")
                if type(index) is not int or not isinstance(function, dict):
                    continue
                call = self.calls.setdefault(index, _Call())
                call.id, call.name = call.id or told.get("id"), call.name or function.get("name")
                if isinstance(function.get("arguments"), str):
                    call.pieces.append(function["arguments"])

    def _item(self, item: Body) -> None:
        if item.get("type") in ("function_call", "custom_tool_call"):
            given = item.get("arguments", item.get("input"))
            self.calls[len(self.calls)] = _Call(item.get("call_id"), item.get("name"), given)
        for block in dicts(item.get("content")):
            self.blocks.append([])
            self._say(block.get("text"))

    def _block(self, block: Body, place: object) -> None:
        self.blocks.append([])
        self._say(block.get("text"))
        if block.get("type") == "tool_use":
            self.calls[place] = _Call(block.get("id"), block.get("name"), block.get("input"))

    def _message_event(self, event: Body) -> None:
        index, delta = event.get("index"), event.get("delta")
        if type(index) is not int:
            return
        if event.get("type") == "content_block_start" and isinstance(event.get("content_block"), dict):
            self._block(event["content_block"], index)
        elif event.get("type") == "content_block_delta" and isinstance(delta, dict):
            self._say(delta.get("text"))
            if index in self.calls and isinstance(delta.get("partial_json"), str):
                self.calls[index].pieces.append(delta["partial_json"])


def _call(call: _Call) -> Body:
    given = "".join(call.pieces) or call.given
    arguments = given
    if isinstance(given, str):
        try:
            # As strictly as a request: what a model writes may hold NaN, which is no JSON.
            arguments = read_json(given.encode("utf-8", "surrogatepass"))
        except RequestError:
            arguments = {"input": given}
    if not isinstance(arguments, dict):
        arguments = {"input": arguments}
    return {"tool_call_id": str(call.id), "function_name": str(call.name), "arguments": arguments}


def dicts(value: Any) -> list[Body]:
    """The objects of a list; of anything else none."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _objects(texts: Iterable[bytes]) -> list[Body]:
    found = []
    for text in texts:
        try:
            told = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(told, dict):
            found.append(told)
    return found
