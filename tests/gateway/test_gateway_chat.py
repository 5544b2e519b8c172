"""The Chat Completions wire, against the shapes of OpenAI's API reference."""

from __future__ import annotations

import json
from typing import Any

import pytest
from gateway_client import MODEL, chat, request, script

from boxeval.gateway.server import Gateway

CALLS = {
    "calls": [
        {"tool": "write", "input": {"path": "a", "content": "é\n"}},
        {"tool": "bash", "input": {"command": "ls"}},
    ]
}


def test_a_text_turn_is_a_chat_completion(gateway: Gateway) -> None:
    route = gateway.open_route(script({"text": "Done."}, input=7, output=3), MODEL)
    answered = chat(gateway.socket_path, route.path)
    assert answered.status == 200
    assert answered.headers["content-type"] == "application/json"
    body = answered.json
    assert body["object"] == "chat.completion"
    assert body["model"] == MODEL
    assert isinstance(body["id"], str) and isinstance(body["created"], int)
    (choice,) = body["choices"]
    assert choice["index"] == 0
    assert choice["finish_reason"] == "stop"
    assert choice["message"]["role"] == "assistant"
    assert choice["message"]["content"] == "Done."
    assert "tool_calls" not in choice["message"]
    assert body["usage"] == {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


def test_a_batch_of_calls_has_ids_that_never_repeat(gateway: Gateway) -> None:
    route = gateway.open_route(script(CALLS, {"calls": [{"tool": "glob", "input": {}}]}), MODEL)
    first = chat(gateway.socket_path, route.path).json["choices"][0]
    second = chat(gateway.socket_path, route.path).json["choices"][0]
    assert first["finish_reason"] == second["finish_reason"] == "tool_calls"
    assert first["message"]["content"] is None
    calls = first["message"]["tool_calls"] + second["message"]["tool_calls"]
    assert [call["id"] for call in calls] == ["call_1", "call_2", "call_3"]
    assert [call["type"] for call in calls] == ["function"] * 3
    assert [call["function"]["name"] for call in calls] == ["write", "bash", "glob"]
    assert json.loads(calls[0]["function"]["arguments"]) == {"path": "a", "content": "é\n"}


def events(body: bytes) -> list[dict[str, Any]]:
    """Server-sent events, with the end mark checked and taken off."""
    *data, end, rest = body.split(b"\n\n")
    assert rest == b""
    assert end == b"data: [DONE]"
    assert all(event.startswith(b"data: ") for event in data)
    return [json.loads(event.removeprefix(b"data: ")) for event in data]


def test_a_streamed_text_adds_up_to_the_same_answer(gateway: Gateway) -> None:
    route = gateway.open_route(script({"text": "Done."}, input=7, output=3), MODEL)
    answered = chat(gateway.socket_path, route.path, stream=True, stream_options={"include_usage": True})
    assert answered.status == 200
    assert answered.headers["content-type"] == "text/event-stream"
    *chunks, last = events(answered.body)
    assert {chunk["object"] for chunk in [*chunks, last]} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in [*chunks, last]}) == 1
    assert all(chunk["usage"] is None for chunk in chunks)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[0]["role"] == "assistant"
    assert "".join(delta.get("content") or "" for delta in deltas) == "Done."
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
    assert reasons == [None] * (len(chunks) - 1) + ["stop"]
    assert last["choices"] == []
    assert last["usage"] == {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


def test_streamed_calls_add_up_by_index(gateway: Gateway) -> None:
    route = gateway.open_route(script(CALLS), MODEL)
    chunks = events(chat(gateway.socket_path, route.path, stream=True).body)
    assert all("usage" not in chunk for chunk in chunks)
    merged: dict[int, dict[str, str]] = {}
    for chunk in chunks:
        for piece in chunk["choices"][0]["delta"].get("tool_calls", []):
            call = merged.setdefault(piece["index"], {"id": "", "name": "", "arguments": ""})
            call["id"] += piece.get("id", "")
            call["name"] += piece["function"].get("name", "")
            call["arguments"] += piece["function"].get("arguments", "")
    assert [(call["id"], call["name"]) for call in merged.values()] == [
        ("call_1", "write"),
        ("call_2", "bash"),
    ]
    assert json.loads(merged[0]["arguments"]) == {"path": "a", "content": "é\n"}
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_a_stream_counts_like_any_answer(gateway: Gateway) -> None:
    route = gateway.open_route(script(CALLS, input=7, output=3), MODEL)
    chat(gateway.socket_path, route.path, stream=True)
    traffic = gateway.close_route(route.token).traffic
    assert (traffic.requests, traffic.input_tokens, traffic.output_tokens, traffic.tool_calls) == (1, 7, 3, 2)


def test_models_are_listed(gateway: Gateway) -> None:
    route = gateway.open_route(script({"text": "x"}), MODEL)
    answered = request(gateway.socket_path, f"{route.path}/models", method="GET")
    assert answered.status == 200
    assert answered.json["object"] == "list"
    assert [model["id"] for model in answered.json["data"]] == [MODEL]
    assert gateway.close_route(route.token).traffic.requests == 0


MESSAGES = [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "invalid_json"),
        (b"{", 400, "invalid_json"),
        (b"\xff\xfe{}", 400, "invalid_json"),
        (b'{"model": NaN}', 400, "invalid_json"),
        (b'{"model": 1e999}', 400, "invalid_json"),
        (b"1" * 5000, 400, "invalid_json"),
        (b"[" * 100_000, 400, "invalid_json"),
        (b"[]", 400, "invalid_request"),
        (b"{}", 400, "invalid_request"),
        ({"model": 5, "messages": MESSAGES}, 400, "invalid_request"),
        ({"model": "other", "messages": MESSAGES}, 404, "model_not_found"),
        ({"model": MODEL}, 400, "invalid_request"),
        ({"model": MODEL, "messages": []}, 400, "invalid_request"),
        ({"model": MODEL, "messages": ["hi"]}, 400, "invalid_request"),
        ({"model": MODEL, "messages": [{"role": "wizard"}]}, 400, "invalid_request"),
        ({"model": MODEL, "messages": [{"role": ["user"]}]}, 400, "invalid_request"),
        ({"model": MODEL, "messages": MESSAGES, "n": 2}, 400, "invalid_request"),
        ({"model": MODEL, "messages": MESSAGES, "stream": "yes"}, 400, "invalid_request"),
        ({"model": MODEL, "messages": MESSAGES, "stream_options": 1}, 400, "invalid_request"),
    ],
)
def test_a_bad_body_gets_an_error_and_costs_no_turn(
    gateway: Gateway, body: bytes | dict[str, Any], status: int, code: str
) -> None:
    route = gateway.open_route(script({"text": "still here"}), MODEL)
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    answered = request(gateway.socket_path, f"{route.path}/chat/completions", sent)
    assert (answered.status, answered.code) == (status, code)
    good = chat(gateway.socket_path, route.path)
    assert good.json["choices"][0]["message"]["content"] == "still here"
    traffic = gateway.close_route(route.token).traffic
    assert traffic.requests == 1
    # What a candidate does wrong is no fault of the model's side, so it can excuse nothing.
    assert traffic.error is None
    assert not traffic.failed_before_first_turn


@pytest.mark.parametrize(
    ("method", "endpoint", "key", "status", "code"),
    [
        ("GET", "/chat/completions", "boxeval-placeholder", 405, "method_not_allowed"),
        ("POST", "/models", "boxeval-placeholder", 405, "method_not_allowed"),
        ("POST", "/embeddings", "boxeval-placeholder", 404, "unknown_url"),
        ("POST", "/chat/completions", "sk-another", 401, "invalid_api_key"),
        ("POST", "/chat/completions", None, 401, "invalid_api_key"),
    ],
)
def test_a_wrong_way_in_gets_an_error(
    gateway: Gateway, method: str, endpoint: str, key: str | None, status: int, code: str
) -> None:
    route = gateway.open_route(script({"text": "x"}), MODEL)
    body = b"{}" if method == "POST" else None
    answered = request(gateway.socket_path, route.path + endpoint, body, method, key)
    assert (answered.status, answered.code) == (status, code)
    assert gateway.close_route(route.token).traffic.requests == 0


def test_head_and_query_strings_are_understood(gateway: Gateway) -> None:
    route = gateway.open_route(script({"text": "x"}), MODEL)
    answered = request(gateway.socket_path, f"{route.path}/models", method="HEAD")
    assert (answered.status, answered.body) == (405, b"")
    assert request(gateway.socket_path, f"{route.path}/models?limit=1", method="GET").status == 200
