"""The Gemini wire, against the shapes of the Gemini API's reference."""

from __future__ import annotations

import json
from typing import Any

import pytest
from gateway_client import MODEL, PLACEHOLDER, Answered, request, script

from boxeval.gateway.gemini import Gemini
from boxeval.gateway.interface import Said
from boxeval.gateway.server import Gateway, Route

HI = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


def ask(gateway: Gateway, route: Route, verb: str, body: Any = None, model: str = MODEL) -> Answered:
    target = f"{route.path.removesuffix('/v1')}/v1beta/models/{model}:{verb}"
    data = json.dumps(HI if body is None else body).encode()
    return request(gateway.socket_path, target, data, key=None, headers={"x-goog-api-key": PLACEHOLDER})


def test_an_answer_has_parts_and_usage(gateway: Gateway) -> None:
    calls = {"text": "I look.", "calls": [{"tool": "ls", "input": {"path": "é"}}]}
    route = gateway.open_route(script(calls, input=7, output=3), MODEL)
    body = ask(gateway, route, "generateContent").json
    (candidate,) = body["candidates"]
    assert candidate["finishReason"] == "STOP"
    assert candidate["content"] == {
        "role": "model",
        "parts": [
            {"text": "I look."},
            {"functionCall": {"id": "call_1", "name": "ls", "args": {"path": "é"}}},
        ],
    }
    assert body["modelVersion"] == MODEL
    usage = body["usageMetadata"]
    assert (usage["promptTokenCount"], usage["candidatesTokenCount"], usage["totalTokenCount"]) == (7, 3, 10)


def test_a_stream_adds_up_and_ends_with_its_reason(gateway: Gateway) -> None:
    route = gateway.open_route(script({"text": "Done."}, input=7, output=3), MODEL)
    answered = ask(gateway, route, "streamGenerateContent?alt=sse")
    assert answered.headers["content-type"] == "text/event-stream"
    *events, rest = answered.body.split(b"\n\n")
    assert rest == b""
    told = [json.loads(event.removeprefix(b"data: ")) for event in events]
    parts = [part["text"] for one in told for part in one["candidates"][0]["content"]["parts"]]
    assert "".join(parts) == "Done."
    reasons = [one["candidates"][0].get("finishReason") for one in told]
    assert reasons == [None, "STOP"]
    assert told[-1]["usageMetadata"]["totalTokenCount"] == 10
    assert gateway.close_route(route.token).traffic.requests == 1


def test_what_came_after_the_models_last_word_is_read() -> None:
    contents = [
        {"parts": [{"text": "early"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "ls", "args": {}}}]},
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "call_1", "name": "ls", "response": {"output": "é"}}},
                {"text": "go on"},
            ],
        },
    ]
    tools = [{"functionDeclarations": [{"name": "ls"}, {"name": "cat"}]}, {"googleSearch": {}}]
    asked = Gemini().read({"model": MODEL, "contents": contents, "tools": tools})
    assert asked.said == (Said('{"output":"é"}', "call_1"), Said("go on"))
    assert asked.tools == {"ls", "cat"}


@pytest.mark.parametrize(
    ("body", "model", "status", "told"),
    [
        ({}, MODEL, 400, "INVALID_ARGUMENT"),
        ({"contents": [5]}, MODEL, 400, "INVALID_ARGUMENT"),
        ({"contents": [{"role": "wizard"}]}, MODEL, 400, "INVALID_ARGUMENT"),
        ({"contents": [{"parts": "x"}]}, MODEL, 400, "INVALID_ARGUMENT"),
        ([], MODEL, 400, "INVALID_ARGUMENT"),
        (None, "other", 404, "NOT_FOUND"),
    ],
)
def test_errors_have_the_shape_of_the_protocol(
    gateway: Gateway, body: Any, model: str, status: int, told: str
) -> None:
    route = gateway.open_route(script({"text": "still here"}), MODEL)
    answered = ask(gateway, route, "generateContent", body, model)
    error = answered.json["error"]
    assert (answered.status, error["code"], error["status"]) == (status, status, told)
    assert ask(gateway, route, "generateContent").status == 200


def test_tokens_and_models(gateway: Gateway) -> None:
    route = gateway.open_route(script({"text": "x"}, input=7), MODEL)
    assert ask(gateway, route, "countTokens").json == {"totalTokens": 7}
    headers = {"x-goog-api-key": PLACEHOLDER}
    listed = request(gateway.socket_path, f"{route.path}/models", None, "GET", None, headers).json
    assert [model["name"] for model in listed["models"]] == [f"models/{MODEL}"]
    assert gateway.close_route(route.token).traffic.requests == 0
