"""Readers of agents that leave one document: mini-swe-agent's trajectory, aider's history."""

from __future__ import annotations

import json
from typing import Any

import pytest

from boxeval.agents import aider_history, trajectory
from boxeval.agents.stream import Output
from boxeval.spec.agent_record import CallEnd, ClaimedUsage, TurnEnd


def output(text: str, exit_code: int = 0) -> Output:
    return Output(text.encode(), len(text.encode()), exit_code)


def answer(call: str | None, sent: object = 100, text: str | None = None) -> dict[str, Any]:
    calls = [{"id": call, "function": {"name": "bash"}}] if call else []
    usage = {"prompt_tokens": sent, "completion_tokens": 20}
    return {
        "role": "assistant",
        "content": text,
        "tool_calls": calls,
        "extra": {"response": {"usage": usage}},
    }


def document(status: str = "Submitted", sent: object = 100) -> str:
    messages = [
        {"role": "user", "content": "mend it"},
        answer("c1", text="I look."),
        {"role": "tool", "tool_call_id": "c1", "extra": {"returncode": 0}},
        answer("c2", sent),
        {"role": "tool", "tool_call_id": "c2", "extra": {"returncode": 1}},
    ]
    return json.dumps({"info": {"exit_status": status, "submission": ""}, "messages": messages})


def test_a_trajectory_is_a_turn() -> None:
    reading = trajectory.read(output(document()))
    assert (reading.end, reading.message) == (TurnEnd.COMPLETED, "I look.")
    assert reading.usage == ClaimedUsage(input=200, output=40)
    assert [(call.name, call.end) for call in reading.calls] == [
        ("bash", CallEnd.COMPLETED),
        ("bash", CallEnd.FAILED),
    ]


@pytest.mark.parametrize(
    ("text", "end"),
    [
        (document("LimitsExceeded"), TurnEnd.FAILED),
        ("", TurnEnd.INCOMPLETE),
        ("[]", TurnEnd.ERROR),
        (document()[:-1], TurnEnd.ERROR),
    ],
)
@pytest.mark.contract("G38")
def test_a_trajectory_that_is_none(text: str, end: TurnEnd) -> None:
    assert trajectory.read(output(text)).end is end


@pytest.mark.parametrize("sent", [None, -1, 1.5, 2**53])
@pytest.mark.contract("G39")
def test_one_answer_without_valid_usage_leaves_none(sent: object) -> None:
    assert trajectory.read(output(document(sent=sent))).usage is None


HISTORY = """\
> Tokens: 10 sent, 5 received.
> Tokens: 2,345 sent, 67 received.
LLM RESPONSE 2026-11-30T05:00:00
ASSISTANT first
LLM RESPONSE 2026-11-30T05:00:01
ASSISTANT I changed the operator.
ASSISTANT\x20
ASSISTANT #### How
ASSISTANT > Tokens: 1 sent, 1 received.
ASSISTANT LLM RESPONSE 2026
"""
LAST = "I changed the operator.\n\n#### How\n> Tokens: 1 sent, 1 received.\nLLM RESPONSE 2026"


@pytest.mark.parametrize(
    ("tokens", "usage"),
    [
        ("345 sent, 67 received.", ClaimedUsage(input=355, output=72)),
        ("2.3k sent, 67 received.", None),
        ("2,345 sent, 67 received.", None),
        ("345 sent, 1" + "0" * 30 + " received.", None),
    ],
)
@pytest.mark.contract("G39", "G40")
def test_the_history_of_a_chat(tokens: str, usage: ClaimedUsage | None) -> None:
    reading = aider_history.read(output(HISTORY.replace("2,345 sent, 67 received.", tokens)))
    assert (reading.end, reading.message) == (TurnEnd.COMPLETED, LAST)
    assert reading.usage == usage


def test_a_history_without_an_answer_is_no_turn() -> None:
    assert aider_history.read(output("> Tokens: 1 sent, 1 received.\n")).end is TurnEnd.INCOMPLETE
    assert aider_history.read(output(HISTORY, 1)).end is TurnEnd.FAILED
