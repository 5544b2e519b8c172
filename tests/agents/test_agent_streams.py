"""Readers of agents' streams, with streams that are as they should be and with hostile ones (G38-G42)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from boxeval.agents import (
    claude_stream,
    clio_stream,
    codex_server_stream,
    codex_stream,
    gemini_stream,
    opencode_stream,
)
from boxeval.agents.stream import STREAM_BYTES, Output, Reading, reading_of
from boxeval.spec.agent_record import CallEnd, ClaimedUsage, ContextIndex, TurnEnd

Event = dict[str, Any]
Reader = Callable[[Output], Reading]

CODEX: list[Event] = [
    {"type": "thread.started", "thread_id": "t1"},
    {"type": "turn.started"},
    {"type": "item.started", "item": {"id": "i1", "type": "command_execution", "status": "in_progress"}},
    {"type": "item.completed", "item": {"id": "i1", "type": "command_execution", "status": "completed"}},
    {"type": "item.completed", "item": {"id": "i2", "type": "agent_message", "text": "first"}},
    {"type": "item.completed", "item": {"id": "i3", "type": "agent_message", "text": "last"}},
    {
        "type": "turn.completed",
        "usage": {"input_tokens": 200, "cached_input_tokens": 20, "output_tokens": 40},
    },
]
CLAUDE: list[Event] = [
    {"type": "system", "subtype": "init", "session_id": "s1"},
    {"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "c1", "name": "Bash"}]}},
    {
        "type": "user",
        "message": {"content": [{"type": "tool_result", "tool_use_id": "c1", "is_error": True}]},
    },
    {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "result": "last",
        # The totals of the session, with an earlier turn of it in them.
        "modelUsage": {"m": {"inputTokens": 1000, "outputTokens": 400, "costUSD": 2.5}},
        "total_cost_usd": 2.5,
        "model_usage_since_last_result": {
            "m": {
                "inputTokens": 100,
                "cacheReadInputTokens": 30,
                "cacheCreationInputTokens": 70,
                "outputTokens": 40,
                "costUSD": 0.5,
            }
        },
    },
]
OPENCODE: list[Event] = [
    {"type": "step_start", "sessionID": "s1", "part": {}},
    {
        "type": "tool_use",
        "sessionID": "s1",
        "part": {"tool": "bash", "callID": "c1", "state": {"status": "completed"}},
    },
    {
        "type": "step_finish",
        "sessionID": "s1",
        "part": {
            "reason": "tool-calls",
            "tokens": {"input": 90, "output": 20, "cache": {"read": 10, "write": 0}},
        },
    },
    {"type": "step_start", "sessionID": "s1", "part": {}},
    {"type": "text", "sessionID": "s1", "part": {"text": "last"}},
    {
        "type": "step_finish",
        "sessionID": "s1",
        "part": {"reason": "stop", "tokens": {"input": 100, "output": 20, "cache": {"read": 0, "write": 0}}},
    },
]
SERVER: list[Event] = [
    {"id": 1, "result": {}},
    {"method": "boxeval/thread", "params": {"threadId": "t1"}},
    {"method": "turn/started", "params": {"threadId": "t1", "turn": {}}},
    {
        "method": "item/completed",
        "params": {"threadId": "t1", "item": {"type": "commandExecution", "id": "i1", "status": "completed"}},
    },
    {
        "method": "item/completed",
        "params": {"threadId": "t1", "item": {"type": "agentMessage", "text": "last"}},
    },
    {
        "method": "item/completed",
        "params": {"threadId": "t2", "item": {"type": "agentMessage", "text": "a child's"}},
    },
    {"method": "turn/completed", "params": {"threadId": "t1", "turn": {"status": "completed"}}},
]
GEMINI: list[Event] = [
    {"type": "init", "session_id": "s1"},
    {"type": "message", "role": "assistant", "content": "thinking aloud"},
    {"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "c1"},
    {"type": "tool_result", "tool_id": "c1", "status": "success"},
    {"type": "message", "role": "assistant", "content": "la", "delta": True},
    {"type": "message", "role": "assistant", "content": "st", "delta": True},
    {"type": "result", "status": "success", "stats": {"input_tokens": 200, "output_tokens": 40, "cached": 0}},
]
ALL: dict[str, tuple[Reader, list[Event]]] = {
    "codex": (codex_stream.read, CODEX),
    "claude": (claude_stream.read, CLAUDE),
    "opencode": (opencode_stream.read, OPENCODE),
    "server": (codex_server_stream.read, SERVER),
    "gemini": (gemini_stream.read, GEMINI),
}


def output(events: list[Event] | bytes, exit_code: int | None = 0) -> Output:
    data = events if isinstance(events, bytes) else b"".join(json.dumps(e).encode() + b"\n" for e in events)
    return Output(data, len(data), exit_code)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.contract("G38", "G40", "G41")
def test_a_good_stream_is_a_completed_turn_with_its_last_message(name: str) -> None:
    read, events = ALL[name]
    reading = read(output(events))
    assert (reading.end, reading.message) == (TurnEnd.COMPLETED, "last")
    assert reading.session in ("t1", "s1")
    (call,) = reading.calls
    assert call.end is (CallEnd.FAILED if name == "claude" else CallEnd.COMPLETED)


@pytest.mark.parametrize(
    ("name", "usage"),
    [
        ("codex", ClaimedUsage(input=200, output=40, cache_read=20)),
        # 100 that were not cached, 30 read from a cache and 70 written to it are 200 in all.
        ("claude", ClaimedUsage(input=200, output=40, cache_read=30, cache_write=70, cost_usd=0.5)),
        # 90 + 10 of the first step and 100 of the second; 20 + 20.
        ("opencode", ClaimedUsage(input=200, output=40, cache_read=10, cache_write=0)),
        ("gemini", ClaimedUsage(input=200, output=40, cache_read=0)),
        ("server", None),
    ],
)
@pytest.mark.contract("G39", "G41")
def test_usage_is_what_the_stream_says(name: str, usage: ClaimedUsage | None) -> None:
    read, events = ALL[name]
    assert read(output(events)).usage == usage


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\xff\xfe{}\n", "not UTF-8 at byte"),
        (b'{"type": "thread.started"', "line {line} is not JSON"),
        (b"[1, 2]\n", "line {line} is not a JSON object"),
        (b'{"a": NaN}\n', "line {line} is not JSON"),
        (b"[" * 200_000, "line {line} is nested too deeply"),
    ],
    ids=["invalid UTF-8", "cut last line", "no object", "NaN", "deep"],
)
@pytest.mark.contract("G38")
def test_a_malformed_stream_is_an_error_whatever_came_before(name: str, data: bytes, said: str) -> None:
    read, events = ALL[name]
    good = output(events).stdout
    reading = read(output(good + data))
    assert reading.end is TurnEnd.ERROR
    assert said.format(line=len(events) + 1) in (reading.reason or "")
    assert reading.message is None
    assert reading.usage is None


@pytest.mark.parametrize("name", ALL)
@pytest.mark.contract("G38", "G73")
def test_the_size_of_a_stream_is_bounded_at_8_mib(name: str) -> None:
    read, events = ALL[name]
    good = output(events).stdout
    at_the_edge = good + b" " * (STREAM_BYTES - len(good) - 1) + b"\n"
    assert len(at_the_edge) == 8 * 1024 * 1024
    assert read(output(at_the_edge)).end is TurnEnd.COMPLETED
    past = read(output(b"\n" + at_the_edge))
    assert (past.end, past.message) == (TurnEnd.ERROR, None)
    # 9 MiB of which the head and the tail were kept: they may even fit together.
    cut = read(Output(good, 9 * 1024 * 1024, 0))
    assert cut.end is TurnEnd.ERROR
    assert "9437184 bytes" in (cut.reason or "")


@pytest.mark.parametrize("name", ALL)
@pytest.mark.contract("G38")
def test_blank_lines_and_unknown_types_are_passed_over(name: str) -> None:
    read, events = ALL[name]
    noise = b'\n   \n{"type": "later.invention", "x": [1]}\n{"method": "later/invention", "params": 7}\n{"type": 5}\n'
    assert read(output(noise + output(events).stdout + noise)).message == "last"


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("exit_code", [1, None])
@pytest.mark.contract("G38")
def test_a_completed_turn_needs_exit_0(name: str, exit_code: int | None) -> None:
    read, events = ALL[name]
    assert read(output(events, exit_code)).end is TurnEnd.FAILED


@pytest.mark.parametrize("name", ALL)
@pytest.mark.contract("G38")
def test_a_stream_that_stops_early_is_incomplete(name: str) -> None:
    read, events = ALL[name]
    for count in range(len(events)):
        reading = read(output(events[:count]))
        assert reading.end is TurnEnd.INCOMPLETE, count
        assert reading.message is None


@pytest.mark.parametrize(
    ("name", "events"),
    [
        ("codex", [CODEX[0], *CODEX]),
        ("codex", [*CODEX, CODEX[0]]),
        ("codex", [*CODEX, CODEX[-1]]),
        ("codex", [*CODEX[:-1], {"type": "turn.failed", "error": {"message": "no"}}, CODEX[-1]]),
        ("codex", [*CODEX, {"type": "turn.failed"}]),
        ("codex", CODEX[1:]),
        ("claude", [*CLAUDE, CLAUDE[-1]]),
        ("claude", [CLAUDE[0] | {"session_id": "other"}, *CLAUDE]),
        ("opencode", [*OPENCODE, OPENCODE[0] | {"sessionID": "other"}]),
        ("server", [*SERVER, SERVER[1]]),
        ("server", [*SERVER, SERVER[-1]]),
        ("gemini", [*GEMINI, GEMINI[0]]),
        ("gemini", [*GEMINI, GEMINI[-1]]),
    ],
)
@pytest.mark.contract("G38")
def test_an_ambiguous_stream_is_an_error(name: str, events: list[Event]) -> None:
    reading = ALL[name][0](output(events))
    assert (reading.end, reading.message, reading.usage) == (TurnEnd.ERROR, None, None)


@pytest.mark.parametrize(
    ("name", "events"),
    [
        ("codex", [*CODEX[:-1], {"type": "turn.failed", "error": {"message": "the model\x1b[2Jfailed"}}]),
        ("claude", [*CLAUDE[:-1], CLAUDE[-1] | {"subtype": "error_during_execution", "is_error": True}]),
        ("opencode", [*OPENCODE, {"type": "error", "sessionID": "s1", "error": {"name": "APIError"}}]),
        (
            "server",
            [
                *SERVER[:-1],
                {"method": "turn/completed", "params": {"threadId": "t1", "turn": {"status": "failed"}}},
            ],
        ),
        ("gemini", [*GEMINI[:-1], {"type": "result", "status": "error"}]),
    ],
)
@pytest.mark.contract("G38")
def test_a_failed_turn_is_told_as_one_and_has_no_message(name: str, events: list[Event]) -> None:
    reading = ALL[name][0](output(events))
    assert (reading.end, reading.message) == (TurnEnd.FAILED, None)
    assert (reading.reason or "").isprintable()


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"input_tokens": 1},
        {"input_tokens": -1, "output_tokens": 1},
        {"input_tokens": True, "output_tokens": 1},
        {"input_tokens": 1.0, "output_tokens": 1},
        {"input_tokens": 2**53, "output_tokens": 1},
        {"input_tokens": "7", "output_tokens": 1},
        {"input_tokens": 1, "output_tokens": 1, "cached_input_tokens": -3},
        [1, 2],
    ],
)
@pytest.mark.contract("G39")
def test_missing_or_invalid_usage_stays_incomplete_and_the_turn_does_not(usage: object) -> None:
    reading = codex_stream.read(output([*CODEX[:-1], {"type": "turn.completed", "usage": usage}]))
    assert (reading.end, reading.message, reading.usage) == (TurnEnd.COMPLETED, "last", None)
    assert reading.usage_reason


@pytest.mark.contract("G39")
def test_counts_that_are_good_each_and_too_large_together_are_no_usage() -> None:
    huge = {"m": {"inputTokens": 2**53 - 1, "cacheReadInputTokens": 1, "outputTokens": 1}}
    reading = claude_stream.read(output([*CLAUDE[:-1], CLAUDE[-1] | {claude_stream.SPENT: huge}]))
    assert (reading.end, reading.usage) == (TurnEnd.COMPLETED, None)
    assert reading.usage_reason


@pytest.mark.parametrize("cost", [1e17, 2**53, 10**400, -1, True, "1", float("inf")])
def test_a_cost_that_no_receipt_can_carry_is_not_known(cost: object) -> None:
    spent = {"m": {"inputTokens": 1, "outputTokens": 1, "costUSD": cost}}
    reading = claude_stream.read(output([*CLAUDE[:-1], CLAUDE[-1] | {claude_stream.SPENT: spent}]))
    if reading.end is TurnEnd.COMPLETED:
        assert reading.usage is not None and reading.usage.cost_usd is None


def elsewhere(value: Any) -> Iterator[Any]:
    """The value with something else in each of its places, one at a time."""
    yield from (None, True, 7, "x", [1], [[]], {"a": 1})
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield from ({**value, key: other} for other in elsewhere(inner))
    for place, inner in enumerate(value) if isinstance(value, list) else ():
        yield from ([*value[:place], other, *value[place + 1 :]] for other in elsewhere(inner))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.contract("G38")
def test_nothing_that_stands_in_another_place_breaks_a_reader(name: str) -> None:
    """An exception would make the trial void, and a candidate could choose that."""
    read, events = ALL[name]
    for place, event in enumerate(events):
        for other in elsewhere(event):
            assert read(output([*events[:place], other, *events[place + 1 :]])).end in TurnEnd


def test_a_stream_that_breaks_its_reader_is_an_error_of_the_stream() -> None:
    def broken(_output: Output) -> Reading:
        raise KeyError("x")

    reading = reading_of(broken, output(b"{}\n"))
    assert (reading.end, reading.message) == (TurnEnd.ERROR, None)
    assert "KeyError" in (reading.reason or "")


@pytest.mark.contract("G39")
def test_a_huge_integer_is_no_usage() -> None:
    last = b'{"type": "turn.completed", "usage": {"input_tokens": 1%s, "output_tokens": 1}}\n' % (
        b"0" * 100_000
    )
    reading = codex_stream.read(output(output(CODEX[:-1]).stdout + last))
    assert (reading.end, reading.usage) == (TurnEnd.COMPLETED, None)


@pytest.mark.contract("G39", "G40")
def test_claude_may_go_on_by_itself_when_a_task_in_the_background_is_done() -> None:
    spent = {
        "m": {"inputTokens": 7, "outputTokens": 1, "costUSD": 0.25},
        "small": {"inputTokens": 1, "outputTokens": 1},
    }
    more = CLAUDE[-1] | {"result": "more", "model_usage_since_last_result": spent}
    reading = claude_stream.read(output([*CLAUDE[:-1], CLAUDE[0], CLAUDE[-1], more]))
    assert (reading.end, reading.message) == (TurnEnd.COMPLETED, "more")
    # 200 + 7 + 1 and 40 + 1 + 1; one model does not say what it cost.
    assert reading.usage == ClaimedUsage(input=208, output=42, cache_read=30, cache_write=70)
    failed = CLAUDE[-1] | {"is_error": True, "subtype": "error_during_execution"}
    reading = claude_stream.read(output([*CLAUDE[:-1], CLAUDE[0], failed, more]))
    assert reading.end is TurnEnd.FAILED
    assert (
        claude_stream.read(output([*CLAUDE[:-1], more | {"model_usage_since_last_result": 1}])).usage is None
    )


@pytest.mark.parametrize("text", [None, "", "  \n", 7, "\ud800"])
@pytest.mark.contract("G40")
def test_without_a_text_there_is_no_final_message(text: object) -> None:
    message = {"type": "item.completed", "item": {"id": "i9", "type": "agent_message", "text": text}}
    reading = codex_stream.read(output([*CODEX[:-1], message, CODEX[-1]]))
    assert (reading.end, reading.message) == (TurnEnd.COMPLETED, None)
    assert reading.message_reason


@pytest.mark.contract("G40")
def test_a_message_after_the_turn_is_not_its_final_one() -> None:
    late = {"type": "item.completed", "item": {"id": "i9", "type": "agent_message", "text": "late"}}
    assert codex_stream.read(output([*CODEX, late])).message == "last"


@pytest.mark.contract("S23")
def test_a_call_counts_once_by_its_id_and_names_are_bounded() -> None:
    twice = [
        CODEX[0],
        CODEX[2],
        CODEX[2],
        CODEX[3],
        CODEX[3] | {"item": {**CODEX[3]["item"], "status": "failed"}},
    ]
    reading = codex_stream.read(output(twice))
    assert [(call.ordinal, call.end) for call in reading.calls] == [(2, CallEnd.COMPLETED)]
    call = {"type": "tool_use", "id": "x", "name": "\x1b]8;;" + "a" * 5000}
    loud = {"type": "assistant", "message": {"content": [call]}}
    (seen,) = claude_stream.read(output([loud])).calls
    assert len(seen.name) <= 256
    assert seen.name.isprintable()


def test_a_flood_of_calls_is_cut_and_says_so() -> None:
    flood = [{"type": "item.started", "item": {"id": f"i{n}", "type": "web_search"}} for n in range(5000)]
    reading = codex_stream.read(output([CODEX[0], *flood, CODEX[-1]]))
    assert (len(reading.calls), reading.calls_truncated) == (4096, True)


CLIO: list[Event] = [
    {"type": "tool_execution_start", "toolName": "bash", "toolCallId": "c1"},
    {"type": "tool_execution_end", "toolCallId": "c1", "isError": False},
    {
        "type": "message_end",
        "message": {
            "role": "assistant",
            "responseId": "r1",
            "content": [{"type": "text", "text": "last"}],
            "usage": {"input": 100, "output": 20, "cacheRead": 5, "cacheWrite": 0},
        },
    },
    {"type": "agent_end"},
]


@pytest.mark.contract("S11", "S21")
def test_a_clio_run_counts_each_response_once() -> None:
    reading = clio_stream.read(output([*CLIO[:3], CLIO[2], CLIO[3]]))
    assert (reading.end, reading.message) == (TurnEnd.COMPLETED, "last")
    assert reading.usage == ClaimedUsage(input=105, output=20, cache_read=5, cache_write=0)
    assert [(call.name, call.end) for call in reading.calls] == [("bash", CallEnd.COMPLETED)]
    assert clio_stream.read(output(CLIO[:3])).end is TurnEnd.INCOMPLETE
    assert clio_stream.read(output(b"{")).end is TurnEnd.ERROR


@pytest.mark.parametrize(("coverage", "told"), [(0.5, 0.5), (1.5, None), ("all", None), (True, None)])
@pytest.mark.contract("S11", "S30")
def test_a_context_index_is_what_the_command_says(coverage: object, told: float | None) -> None:
    document = {"indexedSourceFiles": 3, "coverage": coverage, "structuralHash": "abc"}
    reading = clio_stream.read_context(output([document]))
    assert reading.end is TurnEnd.COMPLETED
    assert reading.context == ContextIndex(indexed_files=3, coverage=told, structural_hash="abc")
    assert clio_stream.read_context(output(b"")).end is TurnEnd.ERROR
    assert clio_stream.read_context(output(b"no", 2)).end is TurnEnd.FAILED
