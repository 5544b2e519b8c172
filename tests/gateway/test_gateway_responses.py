"""The Responses wire, against the shapes of OpenAI's API reference."""

from __future__ import annotations

import json
from typing import Any

import pytest
from gateway_client import MODEL, named_events, request, responses, script

from boxeval.gateway.interface import Said
from boxeval.gateway.responses import Responses
from boxeval.gateway.server import Gateway

BATCH = {
    "calls": [
        {"tool": "shell", "input": {"command": ["ls", "é"]}},
        {"tool": "apply_patch", "input": {"input": "*** Begin Patch\n*** End Patch"}},
    ]
}
TOOLS = [
    {"type": "function", "name": "shell", "parameters": {"type": "object"}},
    {"type": "custom", "name": "apply_patch", "format": {"type": "text"}},
    {"type": "web_search"},
]
USAGE = {
    "input_tokens": 7,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 3,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 10,
}


def test_a_text_turn_is_a_completed_response(gateway: Gateway) -> None:
    route = gateway.open_route(script({"text": "Done."}, input=7, output=3), MODEL)
    body = responses(gateway.socket_path, route.path).json
    assert (body["object"], body["status"], body["model"]) == ("response", "completed", MODEL)
    (item,) = body["output"]
    assert (item["type"], item["role"], item["status"]) == ("message", "assistant", "completed")
    assert item["content"] == [{"type": "output_text", "text": "Done.", "annotations": []}]
    assert body["usage"] == USAGE


def test_the_stream_of_a_text_has_its_events_in_order(gateway: Gateway) -> None:
    route = gateway.open_route(script({"text": "Done."}, input=7, output=3), MODEL)
    answered = responses(gateway.socket_path, route.path, stream=True)
    assert answered.headers["content-type"] == "text/event-stream"
    events = named_events(answered.body)
    assert [event["type"].removeprefix("response.") for event in events] == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert [event["sequence_number"] for event in events] == list(range(9))
    assert len({event["response"]["id"] for event in events if "response" in event}) == 1
    assert {event["item_id"] for event in events[3:7]} == {events[7]["item"]["id"]}
    assert {event["output_index"] for event in events[2:8]} == {0}
    assert events[0]["response"]["usage"] is None
    assert events[4]["delta"] == events[5]["text"] == events[6]["part"]["text"] == "Done."
    done = events[-1]["response"]
    assert (done["status"], done["usage"], done["output"]) == ("completed", USAGE, [events[7]["item"]])


def test_calls_are_functions_but_for_tools_that_take_text(gateway: Gateway) -> None:
    route = gateway.open_route(script(BATCH), MODEL)
    events = named_events(responses(gateway.socket_path, route.path, stream=True, tools=TOOLS).body)
    function, custom = events[-1]["response"]["output"]
    assert (function["type"], function["call_id"], function["name"]) == ("function_call", "call_1", "shell")
    assert json.loads(function["arguments"]) == {"command": ["ls", "é"]}
    assert (custom["type"], custom["call_id"], custom["name"]) == (
        "custom_tool_call",
        "call_2",
        "apply_patch",
    )
    assert custom["input"] == "*** Begin Patch\n*** End Patch"
    assert function["id"] != custom["id"]
    kinds = [event["type"].removeprefix("response.") for event in events]
    assert kinds[3:5] == ["function_call_arguments.delta", "function_call_arguments.done"]
    assert events[3]["delta"] == events[4]["arguments"] == function["arguments"]
    assert kinds[7:9] == ["custom_tool_call_input.delta", "custom_tool_call_input.done"]
    assert events[7]["delta"] == events[8]["input"] == custom["input"]
    traffic = gateway.close_route(route.token).traffic
    assert (traffic.requests, traffic.tool_calls) == (1, 2)


def test_a_call_of_a_tool_in_a_namespace_names_that(gateway: Gateway) -> None:
    """Codex answers `unsupported call` otherwise."""
    nested = {"type": "namespace", "name": "agents", "tools": [{"type": "function", "name": "spawn"}]}
    route = gateway.open_route(script({"calls": [{"tool": "spawn"}, {"tool": "shell"}]}), MODEL)
    sent = responses(gateway.socket_path, route.path, tools=[*TOOLS, nested]).json
    assert [item.get("namespace") for item in sent["output"]] == ["agents", None]


def test_what_came_after_the_models_last_word_is_read() -> None:
    sent: list[dict[str, Any]] = [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "rules"}]},
        {"role": "user", "content": "early"},
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "call_1", "name": "shell", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "no such file"},
        {
            "type": "custom_tool_call_output",
            "call_id": "call_2",
            "output": [{"type": "input_text", "text": "ok"}],
        },
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go on"}]},
    ]
    nested = {"type": "namespace", "name": "mcp", "tools": [{"type": "function", "name": "fetch"}]}
    asked = Responses().read({"model": MODEL, "input": sent, "tools": [*TOOLS, nested]})
    assert asked.said == (Said("no such file", "call_1"), Said("ok", "call_2"), Said("go on"))
    assert asked.tools == {"shell", "apply_patch", "web_search", "fetch"}
    assert asked.custom_tools == {"apply_patch"}
    assert asked.namespaces == {"fetch": "mcp"}
    assert Responses().read({"model": MODEL, "input": "hi"}).said == (Said("hi"),)


@pytest.mark.parametrize(
    ("more", "status", "code"),
    [
        ({"input": None}, 400, "invalid_request"),
        ({"input": []}, 400, "invalid_request"),
        ({"input": [5]}, 400, "invalid_request"),
        ({"input": [{"role": ["user"]}]}, 400, "invalid_request"),
        ({"input": [{"role": "user", "content": 5}]}, 400, "invalid_request"),
        ({"tools": {}}, 400, "invalid_request"),
        ({"stream": 1}, 400, "invalid_request"),
        ({"model": "other"}, 404, "model_not_found"),
    ],
)
def test_a_bad_request_gets_an_error_and_costs_no_turn(
    gateway: Gateway, more: dict[str, Any], status: int, code: str
) -> None:
    route = gateway.open_route(script({"text": "still here"}), MODEL)
    answered = responses(gateway.socket_path, route.path, **more)
    assert (answered.status, answered.code) == (status, code)
    assert responses(gateway.socket_path, route.path).status == 200
    assert gateway.close_route(route.token).traffic.error is None


def test_a_client_is_told_not_to_repeat_what_stays_an_error(gateway: Gateway) -> None:
    route = gateway.open_route(script({"text": "x"}), MODEL)
    responses(gateway.socket_path, route.path)
    over = responses(gateway.socket_path, route.path)
    assert (over.status, over.code, over.headers["x-should-retry"]) == (400, "script_exhausted", "false")


def test_protocols_share_one_script(gateway: Gateway) -> None:
    route = gateway.open_route(script({"text": "one"}, {"text": "two"}), MODEL)
    first = responses(gateway.socket_path, route.path).json
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
    second = request(gateway.socket_path, f"{route.path}/chat/completions", json.dumps(body).encode()).json
    assert first["output"][0]["content"][0]["text"] == "one"
    assert second["choices"][0]["message"]["content"] == "two"
