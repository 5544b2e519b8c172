"""Codex's own session files: attempts by name and ordinal, children, boundaries of turns; all of it hostile."""

from __future__ import annotations

import json
from typing import Any

import pytest

from boxeval.agents.codex_session import read
from boxeval.spec.agent_record import Completeness, NativeSession

Entry = dict[str, Any]


def session(thread: str, *entries: tuple[str, Entry]) -> bytes:
    all_entries = (("session_meta", {"id": thread}), *entries)
    lines = (
        {"ordinal": n, "type": kind, "payload": payload} for n, (kind, payload) in enumerate(all_entries)
    )
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def call(name: str, call_id: str = "c1") -> tuple[str, Entry]:
    return "response_item", {
        "type": "function_call",
        "name": name,
        "call_id": call_id,
        "namespace": "multi_agent_v1",
    }


def accepted(child: str, call_id: str = "c1") -> tuple[str, Entry]:
    output = json.dumps({"agent_id": child})
    return "response_item", {"type": "function_call_output", "call_id": call_id, "output": output}


def started() -> tuple[str, Entry]:
    return "event_msg", {"type": "task_started"}


def returned(text: str, told: str) -> tuple[tuple[str, Entry], ...]:
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    return ("response_item", message), ("event_msg", {"type": "task_complete", "last_agent_message": told})


def seen(*entries: tuple[str, Entry], **others: bytes) -> NativeSession:
    files = {"sessions/a.jsonl": session("t", *entries)}
    return read(files | {f"sessions/{name}.jsonl": data for name, data in others.items()}, "t")


@pytest.mark.contract("G45")
def test_control_calls_are_kept_by_name_and_ordinal_and_others_are_not() -> None:
    found = seen(started(), call("exec_command"), call("create_goal"), call("spawn_agent", "c2"))
    assert [(one.ordinal, one.name) for one in found.calls] == [(3, "create_goal"), (4, "spawn_agent")]
    assert found.status is Completeness.COMPLETE


@pytest.mark.contract("G77")
def test_submissions_to_the_code_mode_are_apart_and_accept_nothing() -> None:
    submission = {"type": "custom_tool_call", "name": "exec", "call_id": "x1", "input": "spawn_agent()"}
    found = seen(("response_item", submission), accepted("child", "x1"))
    assert [(one.ordinal, one.id) for one in found.exec_calls] == [(1, "x1")]
    assert (found.calls, found.children) == ((), ())


@pytest.mark.contract("G46", "G77")
def test_each_accepted_spawn_has_a_child_with_its_state() -> None:
    spawns = [entry for n in range(4) for entry in (call("spawn_agent", f"c{n}"), accepted(f"k{n}", f"c{n}"))]
    good = session("k0", *returned("found it", "found it"))
    other = session("k1", *returned("found it", "nothing"))
    found = seen(*spawns, k0=good, k1=other, k2=session("k2")[:-5], twice=session("k3"), again=session("k3"))
    assert [(child.thread, child.status, child.returned) for child in found.children] == [
        ("k0", "available", True),
        ("k1", "available", False),
        # Cut within its first line, the file names no thread any more.
        ("k2", "unavailable", None),
        ("k3", "ambiguous", None),
    ]
    cut = session("k0", *returned("a", "a")) + b'{"ordinal": 9'
    assert seen(*spawns[:2], k0=cut).children[0].status == "partial"


def test_a_result_of_a_call_without_a_name_is_nobody_s() -> None:
    output = {"type": "function_call_output", "call_id": ["c1"], "output": "{}"}
    assert seen(call("spawn_agent"), ("response_item", output)).children == ()


@pytest.mark.contract("G46")
def test_children_past_eight_are_let_go_and_that_is_told() -> None:
    spawns = [entry for n in range(9) for entry in (call("spawn_agent", f"c{n}"), accepted(f"k{n}", f"c{n}"))]
    found = seen(*spawns)
    assert (len(found.children), found.truncated) == (8, True)
    assert not seen(*spawns[:16]).truncated


@pytest.mark.contract("G47")
def test_calls_of_a_later_turn_lie_above_its_boundary() -> None:
    found = seen(started(), call("get_goal"), started(), call("update_goal"))
    # Entries 1 and 3 begin turns, so what comes after ordinal 2 is of the second.
    assert found.boundaries == (2,)
    assert [one.name for one in found.calls if one.ordinal > found.boundaries[0]] == ["update_goal"]


@pytest.mark.contract("G47")
def test_a_turn_that_codex_began_by_itself_and_gave_up_is_no_later_turn() -> None:
    aborted = ("event_msg", {"type": "turn_aborted"})
    found = seen(started(), call("create_goal"), started(), aborted, started(), call("get_goal"))
    assert found.boundaries == (4,)


@pytest.mark.parametrize(
    ("files", "status"),
    [
        ({}, Completeness.UNAVAILABLE),
        ({"a.jsonl": session("other")}, Completeness.UNAVAILABLE),
        ({"a.jsonl": session("t"), "b.jsonl": session("t")}, Completeness.UNAVAILABLE),
        ({"a.jsonl": session("t") + b"{"}, Completeness.PARTIAL),
        ({"a.jsonl": session("t") + b"\xff\n"}, Completeness.UNAVAILABLE),
        ({"a.jsonl": session("t") + b'{"ordinal": 0, "payload": {}}\n'}, Completeness.PARTIAL),
        (
            {"a.jsonl": session("t") + b'{"ordinal": 1%s, "payload": {}}\n' % (b"0" * 9999)},
            Completeness.PARTIAL,
        ),
        ({"a.jsonl": session("t") + b"[" * 100_000}, Completeness.PARTIAL),
        ({"a.jsonl": session("t") + session("t")}, Completeness.PARTIAL),
    ],
)
@pytest.mark.contract("G45")
def test_a_session_that_does_not_fit_is_never_complete(files: dict[str, bytes], status: Completeness) -> None:
    found = read(files, "t")
    assert found.status is status
    assert found.reason
    assert read(files, None).status is Completeness.UNAVAILABLE
