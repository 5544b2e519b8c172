"""What a script can say beside turns in order: conditions, variables, refusals and faults on purpose."""

from __future__ import annotations

import http.client
import json
import time
from pathlib import Path
from typing import Any

import pytest
from gateway_client import MODEL, Answered, chat, messages, named_events, request, responses, script

from boxeval.gateway.server import Gateway


def said(answered: Answered) -> Any:
    assert answered.status == 200
    return answered.json["choices"][0]["message"]["content"]


def result(text: str) -> list[dict[str, Any]]:
    """A conversation whose last word is a tool's."""
    call = {"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    return [
        {"role": "user", "content": "fix the bug"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": text},
    ]


def test_a_turn_whose_condition_does_not_hold_is_left_out_for_good(gateway: Gateway) -> None:
    turns = script(
        {"text": "a test failed", "when": {"toolResult": "[1-9] failed"}},
        {"text": "all is well"},
        {"text": "bye", "when": {"lastMessage": "^fix"}},
    )
    path = gateway.socket_path
    good, bad = gateway.open_route(turns, MODEL), gateway.open_route(turns, MODEL)
    assert said(chat(path, bad.path, messages=result("3 failed, 1 passed"))) == "a test failed"
    assert said(chat(path, bad.path, messages=result("4 passed"))) == "all is well"
    assert said(chat(path, good.path, messages=result("4 passed"))) == "all is well"
    # The user's words came before the model's last answer, so they are not what was sent now.
    over = chat(path, good.path, messages=result("4 passed"))
    assert (over.status, over.code) == (400, "script_exhausted")
    traffic = gateway.close_route(good.token).traffic
    assert traffic.requests == 1
    # A candidate can bring that about, so it excuses nothing.
    assert traffic.error is not None and not traffic.failed_before_first_turn


def test_all_that_a_condition_names_must_hold(gateway: Gateway) -> None:
    turns = script(
        {"text": "both", "when": {"lastMessage": "again", "toolFailed": True}},
        {"text": "neither"},
    )
    failed = {"type": "tool_result", "tool_use_id": "call_1", "is_error": True, "content": "no"}
    words = {"type": "text", "text": "try again"}
    for content, expected in (([failed, words], "both"), ([failed], "neither"), ([words], "neither")):
        route = gateway.open_route(turns, MODEL)
        sent = [{"role": "user", "content": content}]
        answered = messages(gateway.socket_path, route.path, messages=sent).json
        assert answered["content"][0]["text"] == expected


def test_what_a_pattern_names_is_put_into_later_texts(gateway: Gateway) -> None:
    turns = script(
        {
            "calls": [
                {"tool": "bash", "input": {"command": "curl 127.0.0.1:{{port}}", "env": ["P={{port}}"]}}
            ],
            "when": {"lastMessage": r"port (?P<port>\d+)"},
        },
        {"text": "it was {{port}}, not {{else}} or ${HOME}"},
    )
    route = gateway.open_route(turns, MODEL)
    sent = [{"role": "user", "content": "the server is at port 8080"}]
    first = chat(gateway.socket_path, route.path, messages=sent).json["choices"][0]["message"]
    assert json.loads(first["tool_calls"][0]["function"]["arguments"]) == {
        "command": "curl 127.0.0.1:8080",
        "env": ["P=8080"],
    }
    assert said(chat(gateway.socket_path, route.path)) == "it was 8080, not {{else}} or ${HOME}"


def test_what_a_variable_holds_names_no_other(gateway: Gateway) -> None:
    """Put in one after another, text of the candidate would multiply."""
    when = {"lastMessage": r"(?s)(?P<a>.*)-(?P<b>.*)"}
    route = gateway.open_route(script({"text": "{{a}} {{b}}", "when": when}), MODEL)
    sent = [{"role": "user", "content": "{{b}}{{b}}-{{a}}"}]
    assert said(chat(gateway.socket_path, route.path, messages=sent)) == "{{b}}{{b}} {{a}}"


def test_a_pattern_that_explodes_elsewhere_takes_no_time_here(gateway: Gateway) -> None:
    route = gateway.open_route(
        script({"text": "yes", "when": {"lastMessage": "(a+)+$"}}, {"text": "no"}), MODEL
    )
    sent = [{"role": "user", "content": "a" * 50_000 + "!"}]
    began = time.monotonic()
    assert said(chat(gateway.socket_path, route.path, messages=sent)) == "no"
    assert time.monotonic() - began < 5


def test_a_refusal_is_told_in_the_way_of_each_protocol(gateway: Gateway) -> None:
    route = gateway.open_route(script(*[{"refusal": "I will not."}] * 4), MODEL)
    path = gateway.socket_path
    message = chat(path, route.path).json["choices"][0]["message"]
    assert (message["content"], message["refusal"]) == (None, "I will not.")
    (item,) = responses(path, route.path).json["output"]
    assert item["content"] == [{"type": "refusal", "refusal": "I will not."}]
    assert messages(path, route.path).json["stop_reason"] == "refusal"
    kinds = [event["type"] for event in named_events(responses(path, route.path, stream=True).body)]
    assert kinds[4:6] == ["response.refusal.delta", "response.refusal.done"]


@pytest.mark.parametrize(
    ("status", "openai", "anthropic"),
    [(429, "rate_limit_exceeded", "rate_limit_error"), (500, "scripted_error", "api_error")],
)
def test_an_error_turn_is_an_error_once_and_may_be_tried_again(
    gateway: Gateway, status: int, openai: str, anthropic: str
) -> None:
    turns = script({"error": status}, {"error": status}, {"text": "at last"})
    route = gateway.open_route(turns, MODEL)
    first = chat(gateway.socket_path, route.path)
    assert (first.status, first.code) == (status, openai)
    assert "x-should-retry" not in first.headers
    assert messages(gateway.socket_path, route.path).json["error"]["type"] == anthropic
    assert said(chat(gateway.socket_path, route.path)) == "at last"
    traffic = gateway.close_route(route.token).traffic
    assert traffic.requests == 1
    # The suite tests the candidate with it, so it excuses nothing.
    assert traffic.error is not None and not traffic.failed_before_first_turn


def read_stream(path: Path, target: str, body: dict[str, Any]) -> bytes:
    """All that comes, however it ends."""
    try:
        return request(path, target, json.dumps(body).encode()).body
    except http.client.IncompleteRead as error:
        return error.partial


@pytest.mark.parametrize("events", [0, 2])
def test_a_cut_stream_ends_without_its_end_and_still_counts(gateway: Gateway, events: int) -> None:
    route = gateway.open_route(script({"text": "Done.", "cutAfter": events}, input=7, output=3), MODEL)
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "stream": True}
    got = read_stream(gateway.socket_path, f"{route.path}/chat/completions", body)
    assert got.count(b"\n\n") == events
    assert b"[DONE]" not in got
    traffic = gateway.close_route(route.token).traffic
    assert (traffic.requests, traffic.input_tokens, traffic.output_tokens) == (1, 7, 3)
    assert traffic.unmeasured_requests == 0


def test_a_cut_body_is_shorter_than_it_says(gateway: Gateway) -> None:
    route = gateway.open_route(script({"text": "Done.", "cutAfter": 0}), MODEL)
    with pytest.raises(http.client.IncompleteRead):
        chat(gateway.socket_path, route.path)


def test_a_garbled_event_is_no_json_and_the_others_are(gateway: Gateway) -> None:
    route = gateway.open_route(
        script({"text": "Done.", "garbleAfter": 1}, {"text": "x", "garbleAfter": 0}), MODEL
    )
    *found, end, _ = chat(gateway.socket_path, route.path, stream=True).body.split(b"\n\n")
    assert end == b"data: [DONE]"
    for number, event in enumerate(found):
        if number == 1:
            with pytest.raises(ValueError):
                json.loads(event.removeprefix(b"data: "))
        else:
            json.loads(event.removeprefix(b"data: "))
    body = chat(gateway.socket_path, route.path).body
    with pytest.raises(ValueError):
        json.loads(body)


def test_a_slow_turn_takes_its_time(gateway: Gateway) -> None:
    route = gateway.open_route(script({"text": "Done.", "delayMs": 300}), MODEL)
    began = time.monotonic()
    assert said(chat(gateway.socket_path, route.path)) == "Done."
    assert time.monotonic() - began >= 0.3
    assert gateway.close_route(route.token).traffic.model_ms >= 300
