"""The Messages wire, against the shapes of Anthropic's API reference, and background requests."""

from __future__ import annotations

import json
from typing import Any

import pytest
from gateway_client import MODEL, messages, named_events, request, script

from boxeval.gateway.interface import PLACEHOLDER_KEY, Said
from boxeval.gateway.messages import Messages
from boxeval.gateway.names import Names
from boxeval.gateway.server import Gateway

BATCH = {"calls": [{"tool": "Bash", "input": {"command": "ls é"}}, {"tool": "Read", "input": {"limit": 5}}]}
BASH = [{"name": "Bash", "description": "runs", "input_schema": {"type": "object"}}]


def test_a_text_turn_is_a_message(gateway: Gateway) -> None:
    route = gateway.open_route(script({"text": "Done."}, input=7, output=3), MODEL)
    body = messages(gateway.socket_path, route.path).json
    assert (body["type"], body["role"], body["model"]) == ("message", "assistant", MODEL)
    assert body["content"] == [{"type": "text", "text": "Done."}]
    assert (body["stop_reason"], body["stop_sequence"]) == ("end_turn", None)
    assert (body["usage"]["input_tokens"], body["usage"]["output_tokens"]) == (7, 3)


def test_the_stream_of_a_text_has_its_events_in_order(gateway: Gateway) -> None:
    route = gateway.open_route(script({"text": "Done."}, input=7, output=3), MODEL)
    events = named_events(messages(gateway.socket_path, route.path, stream=True).body)
    assert [event["type"] for event in events] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    start = events[0]["message"]
    assert (start["content"], start["stop_reason"], start["usage"]["input_tokens"]) == ([], None, 7)
    assert events[1]["content_block"] == {"type": "text", "text": ""}
    assert events[2]["delta"] == {"type": "text_delta", "text": "Done."}
    assert {event["index"] for event in events[1:4]} == {0}
    assert events[4]["delta"] == {"stop_reason": "end_turn", "stop_sequence": None}
    assert events[4]["usage"]["output_tokens"] == 3


def test_streamed_calls_add_up_by_index(gateway: Gateway) -> None:
    route = gateway.open_route(script(BATCH), MODEL)
    events = named_events(messages(gateway.socket_path, route.path, stream=True, tools=BASH).body)
    starts = [event for event in events if event["type"] == "content_block_start"]
    assert [event["content_block"] for event in starts] == [
        {"type": "tool_use", "id": "call_1", "name": "Bash", "input": {}},
        {"type": "tool_use", "id": "call_2", "name": "Read", "input": {}},
    ]
    assert [event["index"] for event in starts] == [0, 1]
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert [json.loads(delta["partial_json"]) for delta in deltas] == [{"command": "ls é"}, {"limit": 5}]
    assert {delta["type"] for delta in deltas} == {"input_json_delta"}
    assert events[-2]["delta"]["stop_reason"] == "tool_use"


def test_what_came_after_the_models_last_word_is_read() -> None:
    sent: list[dict[str, Any]] = [
        {"role": "user", "content": "early"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "call_1", "name": "Bash", "input": {}}]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "call_1", "is_error": True, "content": "exit 1"},
                {"type": "tool_result", "tool_use_id": "call_2", "content": [{"type": "text", "text": "ok"}]},
                {"type": "text", "text": "go on"},
            ],
        },
    ]
    asked = Messages().read({"model": MODEL, "messages": sent, "tools": BASH})
    assert asked.said == (Said("exit 1", "call_1", True), Said("ok", "call_2", False), Said("go on"))
    assert asked.tools == {"Bash"}


@pytest.mark.parametrize(
    ("more", "status", "kind"),
    [
        ({"messages": []}, 400, "invalid_request_error"),
        ({"messages": [{"role": {}}]}, 400, "invalid_request_error"),
        ({"messages": [{"role": "user", "content": ["x"]}]}, 400, "invalid_request_error"),
        ({"tools": [1]}, 400, "invalid_request_error"),
        ({"model": "other"}, 404, "not_found_error"),
    ],
)
def test_errors_have_the_shape_of_the_protocol(
    gateway: Gateway, more: dict[str, Any], status: int, kind: str
) -> None:
    route = gateway.open_route(script({"text": "still here"}), MODEL)
    answered = messages(gateway.socket_path, route.path, **more)
    assert answered.status == status
    assert answered.json["type"] == "error"
    assert answered.json["error"]["type"] == kind
    assert messages(gateway.socket_path, route.path).status == 200
    assert gateway.close_route(route.token).traffic.error is None


def test_models_and_errors_follow_the_version_header(gateway: Gateway) -> None:
    route = gateway.open_route(script({"text": "x"}), MODEL)
    headers = {"x-api-key": PLACEHOLDER_KEY, "anthropic-version": "2023-06-01"}
    listed = request(gateway.socket_path, f"{route.path}/models?limit=1000", None, "GET", None, headers).json
    assert [(model["type"], model["id"]) for model in listed["data"]] == [("model", MODEL)]
    assert (listed["first_id"], listed["last_id"], listed["has_more"]) == (MODEL, MODEL, False)
    lost = request(gateway.socket_path, "/t/nobody/v1/messages", b"{}", "POST", None, headers).json
    assert lost["error"] == {
        "type": "not_found_error",
        "message": "unknown_url: there is nothing at this path",
    }


def test_either_way_to_send_the_placeholder_is_good_and_another_key_is_not(gateway: Gateway) -> None:
    route = gateway.open_route(script({"text": "1"}, {"text": "2"}), MODEL)
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}).encode()
    target = f"{route.path}/messages"
    assert request(gateway.socket_path, target, body).status == 200  # Authorization: Bearer
    wrong = request(gateway.socket_path, target, body, key=None, headers={"x-api-key": "sk-another"})
    assert (wrong.status, wrong.json["error"]["type"]) == (401, "authentication_error")


def test_tokens_are_counted_without_a_turn(gateway: Gateway) -> None:
    route = gateway.open_route(script({"text": "x"}, input=7), MODEL)
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}).encode()
    counted = request(gateway.socket_path, f"{route.path}/messages/count_tokens", body)
    assert (counted.status, counted.json) == (200, {"input_tokens": 7})
    assert gateway.close_route(route.token).traffic.requests == 0


def test_background_requests_use_up_no_turn(gateway: Gateway) -> None:
    names = Names(MODEL, background=("claude-*haiku*",), tools_only=True)
    route = gateway.open_route(script({"text": "the turn"}, input=7, output=3), names)
    small = messages(gateway.socket_path, route.path, model="claude-3-5-haiku-20241022", tools=BASH)
    bare = messages(gateway.socket_path, route.path, stream=True)
    assert small.json["content"] == [{"type": "text", "text": "OK"}]
    assert small.json["model"] == "claude-3-5-haiku-20241022"
    assert bare.status == 200
    assert messages(gateway.socket_path, route.path, model="claude-opus").status == 404
    turn = messages(gateway.socket_path, route.path, tools=BASH).json
    assert turn["content"] == [{"type": "text", "text": "the turn"}]
    traffic = gateway.close_route(route.token).traffic
    assert (traffic.requests, traffic.background_requests) == (1, 2)
    assert (traffic.input_tokens, traffic.output_tokens) == (7, 3)
    assert traffic.error is None
