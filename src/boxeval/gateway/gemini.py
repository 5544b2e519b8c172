"""Google's Gemini API on the wire: `generateContent` and its stream, for scripted models.

The shapes follow the reference of the Gemini API. Its model and whether it streams stand in the path; the route
puts both into the data, where the other protocols have them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from boxeval.gateway.interface import Answer, Asked, Heard, Said, Usage, WireError, malformed
from boxeval.gateway.json_body import (
    at,
    compact_text,
    count,
    hear_call,
    hear_id,
    hear_text,
    listed,
    objects,
    read_object,
    role_of,
)
from boxeval.gateway.sse import event

ROLES = frozenset({"user", "model", "function"})
_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


class Gemini:
    """`POST models/NAME:generateContent`, `:streamGenerateContent`."""

    name = "gemini"

    def read(self, data: Any) -> Asked:
        """See `Wire`."""
        data = read_object(data)
        tools = [
            tool.get("name")
            for group in objects(data.get("tools"), "tools")
            for tool in objects(group.get("functionDeclarations"), "functionDeclarations")
        ]
        return Asked(
            model=data["model"],
            stream=bool(data.get("stream")),
            said=_said(data.get("contents")),
            tools=frozenset(name for name in tools if isinstance(name, str)),
        )

    def body(self, answer: Answer, asked: Asked, created: int) -> dict[str, Any]:  # noqa: ARG002 - it has no date
        """See `Wire`: a whole `GenerateContentResponse`."""
        return _response(answer, asked, list(_parts(answer)), is_last=True)

    def events(self, answer: Answer, asked: Asked, created: int) -> Iterator[bytes]:  # noqa: ARG002
        """See `Wire`: a response for each part, then one with the end and the usage."""
        for part in _parts(answer):
            yield event(_response(answer, asked, [part], is_last=False))
        yield event(_response(answer, asked, [{"text": ""}], is_last=True))

    def hear(self, data: Any, heard: Heard) -> None:
        """See `Wire`."""
        if usage := at(data, "usageMetadata"):
            read = count(usage, "cachedContentTokenCount")
            heard.usage = Usage(count(usage, "promptTokenCount"), count(usage, "candidatesTokenCount"), read)
            heard.usages_told += 1
        for candidate in listed(data, "candidates"):
            for part in listed(candidate, "content", "parts"):
                hear_text(part.get("text"), heard)
                hear_call(at(part, "functionCall", "id"), heard)
            heard.is_refusal |= at(candidate, "finishReason") == "SAFETY"
            heard.is_whole |= at(candidate, "finishReason") is not None
        hear_id(at(data, "responseId"), heard)

    def models(self, name: str) -> dict[str, Any]:
        """See `Wire`."""
        methods = ["generateContent", "countTokens"]
        return {"models": [{"name": f"models/{name}", "supportedGenerationMethods": methods}]}

    def error(self, fault: WireError) -> dict[str, Any]:
        """See `Wire`."""
        status = _STATUSES.get(fault.status, "INTERNAL" if fault.status >= 500 else "INVALID_ARGUMENT")
        message = f"{fault.code}: {fault.message}"
        return {"error": {"code": fault.status, "message": message, "status": status}}


def _said(contents: Any) -> tuple[Said, ...]:
    """What came after the last content of the model's."""
    if not isinstance(contents, list) or not contents:
        raise malformed("contents: must be a list of at least one content")
    said: list[Said] = []
    for index, content in enumerate(contents):
        name = f"contents[{index}]"
        role = role_of({"role": "user"} | content if isinstance(content, dict) else None, ROLES, name)
        if role == "model":
            said = []
            continue
        for part in objects(content.get("parts"), f"{name}.parts"):
            result = part.get("functionResponse")
            if isinstance(result, dict):
                call_id = result.get("id") or result.get("name")
                text = compact_text(result.get("response"))
                said.append(Said(text, call_id if isinstance(call_id, str) else ""))
            elif isinstance(part.get("text"), str):
                said.append(Said(part["text"]))
    return tuple(said)


def _parts(answer: Answer) -> Iterator[dict[str, Any]]:
    if answer.text is not None:
        yield {"text": answer.text}
    for call in answer.calls:
        yield {"functionCall": {"id": call.id, "name": call.name, "args": dict(call.input)}}


def _response(answer: Answer, asked: Asked, parts: list[dict[str, Any]], is_last: bool) -> dict[str, Any]:
    candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": parts}}
    told: dict[str, Any] = {
        "candidates": [candidate],
        "modelVersion": asked.model,
        "responseId": f"resp-{answer.number}",
    }
    if is_last:
        candidate["finishReason"] = "SAFETY" if answer.is_refusal else "STOP"
        usage = answer.usage
        told["usageMetadata"] = {
            "promptTokenCount": usage.input,
            "candidatesTokenCount": usage.output,
            "totalTokenCount": usage.input + usage.output,
            "cachedContentTokenCount": usage.cache_read,
        }
    return told
