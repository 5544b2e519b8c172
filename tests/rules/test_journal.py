"""What is read of an agent's session ledger, from ledgers written by hand; nothing in one can do harm."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import run_samples as samples
from boxeval.rules.journal import read_journal
from boxeval.rules.metrics import measure
from boxeval.spec.base import Scalar
from boxeval.spec.journal import Journal
from boxeval.spec.plan import PlannedTask
from boxeval.spec.suite import Runner, RunnerKind

AGENT = samples.task(runner=Runner(kind=RunnerKind.SCRIPTED, prompt="x"))


def entry(kind: str, session: Any = "main.1", **fields: Any) -> dict[str, Any]:
    return {"session": session, "type": kind, **fields}


def assistant(text: str | None = None, *ids: str, session: str = "main.1") -> dict[str, Any]:
    calls = [{"id": name, "name": "read", "arguments": "{}"} for name in ids]
    return entry("assistant", session, text=text, calls=calls)


def tool(call_id: str, text: str = "", **marks: Any) -> dict[str, Any]:
    return entry("tool", call_id=call_id, text=text, **marks)


def ledger(*entries: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in entries)


def sealed(*entries: dict[str, Any], **receipt: Any) -> bytes:
    """A session with its receipt: SHA-256 over the lines before it and the receipt in canonical form."""
    lines = ledger(*entries)
    last: dict[str, Any] = {"session": "main.1", "type": "receipt", "role": "main", "parent": None}
    last |= {"reason": "completed", "exit": 0, "usage": None, **receipt}
    form = json.dumps(last, sort_keys=True, separators=(",", ":")).encode()
    return lines + ledger({**last, "digest": hashlib.sha256(lines + form).hexdigest()})


BEGIN = entry("session", format=1, role="main", parent=None)


def metrics(journal: Journal | None, task: PlannedTask = AGENT, **seen: Any) -> dict[str, Scalar]:
    return measure(task, samples.seen(journal=journal, **seen), 1)


@pytest.mark.contract("S26", "S28")
def test_a_good_session() -> None:
    data = sealed(
        BEGIN,
        entry("user", text="go"),
        assistant(None, "c1", "c2"),
        tool("c1"),
        tool("c2", error=True, blocked=True),
        assistant("done"),
        usage={"prompt_tokens": 200, "completion_tokens": 40, "total_tokens": 240},
    )
    found = metrics(read_journal(data))
    assert {
        name: found[name] for name in found if name.startswith(("ledger.", "receipt.", "tools.f", "tools.b"))
    } == {
        "tools.failed": 1,
        "tools.blocked": 1,
        "receipt.sealed": True,
        "receipt.count": 1,
        "receipt.integrityValid": True,
        "receipt.outcomeMatchesExit": True,
        "receipt.rootCount": 1,
        "receipt.recoveryCount": 0,
        "ledger.formatVersion": 1,
        "ledger.toolPairsUnmatched": 0,
        "ledger.assistantBetweenCallAndResult": 0,
        "ledger.sessionCount": 1,
    }
    assert read_journal(data).sha256 == hashlib.sha256(data).hexdigest()
    (receipt,) = read_journal(data).receipts
    assert (receipt.claimed_input, receipt.claimed_output, receipt.claimed_total) == (200, 40, 240)


@pytest.mark.contract("S28")
@pytest.mark.parametrize(
    ("entries", "unmatched", "between"),
    [
        ([assistant(None, "c1")], 1, 0),
        ([tool("c1")], 1, 0),
        ([assistant(None, "c1"), tool("c2")], 2, 0),
        ([assistant(None, "c1"), tool("c1"), tool("c1")], 1, 0),
        ([assistant(None, "c1"), assistant("hm"), tool("c1")], 0, 1),
        ([assistant(None, "c1"), assistant(None, "c2"), assistant("hm"), tool("c2"), tool("c1")], 0, 2),
        ([assistant(None, "c1"), tool("c1"), assistant(None, "c1"), tool("c1")], 0, 0),
    ],
)
def test_calls_and_results_are_held_against_each_other(
    entries: list[dict[str, Any]], unmatched: int, between: int
) -> None:
    found = read_journal(ledger(BEGIN, *entries))
    assert (found.calls_unmatched, found.messages_between) == (unmatched, between)


@pytest.mark.contract("S26")
def test_any_change_to_a_sealed_session_makes_its_receipt_invalid() -> None:
    data = sealed(BEGIN, entry("user", text="go"), assistant("done"))
    assert read_journal(data).receipts[0].valid
    lines = data.splitlines(keepends=True)
    bad = [
        data.replace(b"go", b"no"),
        data.replace(b'"exit": 0', b'"exit": 1'),
        data.replace(b'"completed"', b'"max_turns"'),
        b"".join(lines[1:]),
        b"".join([lines[0], *lines[2:]]),
        b"".join([lines[1], lines[0], *lines[2:]]),
        data + lines[1],
        data + lines[-1],
        data.replace(b'"go"', b'"go" '),
    ]
    for changed in bad:
        assert changed != data
        receipts = read_journal(changed).receipts
        assert [receipt.valid for receipt in receipts] == [False]
        assert metrics(read_journal(changed))["receipt.integrityValid"] is False


@pytest.mark.contract("S26")
def test_a_session_that_was_cut_short_is_not_sealed() -> None:
    data = sealed(BEGIN, assistant("done"))
    torn = read_journal(data[:-20])
    found = metrics(torn)
    assert (torn.torn, torn.unsealed) == (1, 1)
    assert (found["receipt.sealed"], found["receipt.integrityValid"]) == (False, None)
    assert found["receipt.outcomeMatchesExit"] is None


@pytest.mark.contract("S26")
@pytest.mark.parametrize(
    ("code", "reason", "ended", "matches"),
    [
        (0, "completed", samples.command(0), True),
        (130, "signal", samples.command(130), True),
        (137, "signal", samples.killed(9), True),
        (0, "completed", samples.command(3), False),
        (0, "max_turns", samples.command(0), False),
        (3, "completed", samples.command(3), False),
        (0, "completed", samples.timed_out(), False),
    ],
)
def test_what_a_receipt_says_is_held_against_the_exit_that_the_shim_saw(
    code: int, reason: str, ended: Any, matches: bool
) -> None:
    journal = read_journal(sealed(BEGIN, exit=code, reason=reason))
    found = metrics(journal, agent=samples.box(ended))
    assert found["receipt.outcomeMatchesExit"] is matches


@pytest.mark.contract("S28")
@pytest.mark.parametrize(
    ("answer", "after", "expected"),
    [
        ("It is heron-4711.", "Which one?", True),
        ("It is heron-4711.", "Is it heron-4711?", False),
        ("I forgot.", "Which one?", False),
        ("It is a heron.", "Which one?", False),
    ],
)
def test_a_fact_counts_only_if_it_was_told_before_alone(answer: str, after: str, expected: bool) -> None:
    data = ledger(
        BEGIN,
        entry("user", text="The code word is heron-4711."),
        entry("compaction", summary="The code word is heron-4711."),
        entry("user", text=after),
        assistant(answer),
    )
    assert read_journal(data).answered_from_before is expected


@pytest.mark.parametrize("place", ["user", "assistant"])
def test_a_long_word_takes_no_longer_than_a_short_one(place: str) -> None:
    """A pattern that looked ahead took a time that grew with the square: hours for this one."""
    long = "a" * 1_000_000
    told, said = (long, "x") if place == "user" else ("x", long)
    data = ledger(BEGIN, entry("user", text=told), entry("compaction", summary="s"), assistant(said))
    assert read_journal(data).answered_from_before is False


def test_without_a_compaction_there_is_nothing_to_continue() -> None:
    found = metrics(read_journal(ledger(BEGIN, assistant("heron-4711"))))
    assert found["continuity.compactionSummaryPresent"] is False
    assert found["continuity.answeredFromPreCompaction"] is None
    empty = read_journal(ledger(BEGIN, entry("compaction", summary=" ")))
    assert metrics(empty)["continuity.compactionSummaryPresent"] is False


LOOP = {
    "session": "main.1",
    "max_attempts": 3,
    "attempts": 2,
    "repairs": 1,
    "repairs_sealed": 1,
    "solved": True,
    "reason": "resolved",
}


@pytest.mark.contract("S43", "S30")
@pytest.mark.parametrize(
    ("changes", "name", "value"),
    [
        ({}, "loop.resolved", True),
        ({}, "loop.reasonDeclared", True),
        ({}, "loop.receiptsMatchRepairs", True),
        ({"repairs_sealed": 0}, "loop.receiptsMatchRepairs", False),
        ({"solved": False}, "loop.resolved", False),
        ({"solved": False}, "loop.reasonDeclared", False),
        ({"reason": None}, "loop.reasonDeclared", False),
        ({"reason": "because"}, "loop.reasonDeclared", False),
        ({"reason": "loop_bound_exhausted", "solved": False}, "loop.reasonDeclared", False),
        ({"reason": "loop_bound_exhausted", "solved": False, "attempts": 3}, "loop.reasonDeclared", True),
        ({"reason": "loop_not_reached", "solved": False}, "loop.reasonDeclared", False),
        ({"reason": "loop_not_reached", "solved": False, "attempts": 0}, "loop.reasonDeclared", True),
        ({"reason": "loop_step_failed", "solved": False}, "loop.reasonDeclared", True),
        ({"skipped": 2}, "loop.skippedNodes", 2),
        ({"unneeded": 2}, "loop.unneededNodes", 2),
    ],
)
def test_a_loop_is_judged_by_its_single_verifications(changes: Any, name: str, value: Scalar) -> None:
    loop = samples.journal().loops[0].model_validate({**LOOP, **changes})
    assert metrics(samples.journal(loops=(loop,)))[name] == value


def test_a_loop_that_claims_more_than_it_did_is_found_out() -> None:
    data = ledger(
        BEGIN,
        entry("loop_start", max_attempts=3, verify="x"),
        entry("verification", attempt=1, exit_code=1),
        entry("dispatch", worker="repair.1"),
        entry("loop", reason="resolved", nodes=[{"state": "done"}, {"state": "unneeded"}]),
    )
    found = metrics(read_journal(data))
    assert (found["loop.attemptsSpent"], found["loop.repairsSpent"]) == (1, 1)
    assert found["loop.resolved"] is False
    assert found["loop.reasonDeclared"] is False
    assert found["loop.receiptsMatchRepairs"] is False


@pytest.mark.parametrize("journal", [None, Journal(sha256=None, fault="there is none")])
def test_without_a_ledger_nothing_is_measured(journal: Journal | None) -> None:
    found = metrics(journal)
    names = [name for name in found if name.startswith(("receipt.", "ledger.", "loop.", "continuity."))]
    assert names
    assert {found[name] for name in (*names, "tools.failed", "process.attestedWorkers")} == {None}


@pytest.mark.contract("S27")
def test_only_workers_with_a_valid_receipt_are_attested() -> None:
    receipts = (
        samples.receipt("main.1"),
        samples.receipt("worker.1", "main.1"),
        samples.receipt("worker.2", "main.1", valid=False),
        samples.receipt("repair.1", "main.1"),
    )
    assert metrics(samples.journal(receipts=receipts))["process.attestedWorkers"] == 2


HOSTILE = [
    b"",
    b"\xff\xfe\n",
    b"[" * 100_000,
    b'{"session": "main.1", "type": "receipt", "exit": ' + b"9" * 5000 + b"}\n",
    ledger(entry("receipt", exit=10**30, usage={"total_tokens": -1}, role="\ud800", reason="a b", digest=5)),
    ledger(entry("receipt", exit=True, usage=[], parent={}, role=None, reason=None)),
    ledger(entry("assistant", text=["x"], calls={"a": 1}), entry("assistant", calls=[1, {"id": []}])),
    ledger(entry("loop_start", max_attempts="x"), entry("loop", nodes=[3, {"state": []}], reason={})),
    ledger(entry("tool", session="../x"), entry("tool", session=None), {"type": 3, "session": "a"}),
    ledger(*(entry("receipt", session=f"main.{n}") for n in range(1000))),
    ledger(entry("compaction", summary=None), assistant("x")),
]


@pytest.mark.parametrize("data", HOSTILE, ids=range(len(HOSTILE)))
def test_no_ledger_is_an_error(data: bytes) -> None:
    found = read_journal(data)
    assert len(found.receipts) <= 256
    assert not any(receipt.valid for receipt in found.receipts)
    assert Journal.model_validate_json(found.model_dump_json()) == found


@given(
    st.lists(
        st.binary(max_size=40) | st.sampled_from(ledger(BEGIN, assistant(None, "a"), tool("a")).splitlines())
    )
)
def test_any_bytes_can_be_read(lines: list[bytes]) -> None:
    read_journal(b"\n".join(lines))
