"""OpenAI Chat Completions on the wire: reading a request, and shaping answers, streams and errors. No IO.

The shapes follow OpenAI's API reference: `chat.completion`, `chat.completion.chunk`, `list` of `model`, and
`{"error": {message, type, param, code}}`. docs/scripted-models.md says which part of the protocol is spoken.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from boxeval.gateway.interface import Answer, RequestError, WireError, malformed

DONE = b"data: [DONE]\n\n"
ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What of a request changes the form of its answer."""

    stream: bool
    include_usage: bool


def read_json(body: bytes) -> Any:
    """Strict JSON: UTF-8, no NaN or Infinity, bounded depth and digits. Raises `RequestError`."""
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_no_constant, parse_float=_finite)
    except RecursionError:
        raise malformed("the body is nested too deeply", "invalid_json") from None
    except ValueError as error:
        raise malformed(f"the body is not JSON: {error}", "invalid_json") from None


def read_request(data: Any, model_name: str) -> ChatRequest:
    """Check a `POST chat/completions` body as far as an answer depends on it. Raises `RequestError`."""
    if not isinstance(data, dict):
        raise malformed("the body must be a JSON object")
    if not isinstance(data.get("model"), str):
        raise malformed("model: must be a string")
    if data["model"] != model_name:
        raise RequestError(
            404, "invalid_request_error", "model_not_found", f"model: this route serves {model_name!r} only"
        )
    _check_messages(data.get("messages"))
    if data.get("n", 1) not in (1, None):
        raise malformed("n: only 1 choice is served")
    stream = data.get("stream") or False
    if not isinstance(stream, bool):
        raise malformed("stream: must be true or false")
    options = data.get("stream_options") or {}
    if not isinstance(options, dict):
        raise malformed("stream_options: must be an object")
    return ChatRequest(stream, options.get("include_usage") is True)


def completion(answer: Answer, model_name: str, created: int) -> dict[str, Any]:
    """The body of an answer that is not streamed. `created` is Unix seconds."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": None}
    if answer.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in answer.calls
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish_reason(answer)}
    head = _head(answer, model_name, created, "chat.completion")
    return {**head, "choices": [choice], "usage": _usage(answer)}


def stream(answer: Answer, model_name: str, created: int, include_usage: bool) -> Iterator[bytes]:
    """The same answer as server-sent events, one chunk each, ended by `[DONE]`."""
    head = _head(answer, model_name, created, "chat.completion.chunk")
    if include_usage:
        head["usage"] = None
    for delta in _deltas(answer):
        yield _event({**head, "choices": [_chunk(delta, None)]})
    yield _event({**head, "choices": [_chunk({}, _finish_reason(answer))]})
    if include_usage:
        yield _event({**head, "choices": [], "usage": _usage(answer)})
    yield DONE


def models(model_name: str) -> dict[str, Any]:
    """The body of `GET models`."""
    return {
        "object": "list",
        "data": [{"id": model_name, "object": "model", "created": 0, "owned_by": "boxeval"}],
    }


def error(fault: WireError) -> dict[str, Any]:
    """The body of every error answer."""
    return {
        "error": {"message": fault.message, "type": fault.kind, "param": None, "code": fault.code},
    }


def _check_messages(messages: Any) -> None:
    if not isinstance(messages, list) or not messages:
        raise malformed("messages: must be a list of at least one message")
    for index, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if not isinstance(role, str) or role not in ROLES:
            raise malformed(f"messages[{index}]: must be an object with a known role")


def _deltas(answer: Answer) -> Iterator[dict[str, Any]]:
    """Pieces of the message as real servers send them: a call's arguments come after its name."""
    yield {"role": "assistant", "content": "" if answer.text is not None else None}
    if answer.text:
        yield {"content": answer.text}
    for index, call in enumerate(answer.calls):
        function = {"name": call.name, "arguments": ""}
        yield {"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]}
        yield {"tool_calls": [{"index": index, "function": {"arguments": call.arguments}}]}


def _head(answer: Answer, model_name: str, created: int, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{answer.number}", "object": kind, "created": created, "model": model_name}


def _chunk(delta: dict[str, Any], finish_reason: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}


def _event(chunk: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n"


def _finish_reason(answer: Answer) -> str:
    return "tool_calls" if answer.calls else "stop"


def _usage(answer: Answer) -> dict[str, int]:
    return {
        "prompt_tokens": answer.input_tokens,
        "completion_tokens": answer.output_tokens,
        "total_tokens": answer.input_tokens + answer.output_tokens,
    }


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value
