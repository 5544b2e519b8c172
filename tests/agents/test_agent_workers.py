"""The second surface and bounded loops of the reference agent: workers, repairs, and their receipts (S43)."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from agent_harness import agent_environment, call, run_agent, script, served, start_agent
from test_agent_flows import journal, wait_for

pytestmark = pytest.mark.slow
VERIFY = "grep -q 42 answer"


def write(text: str) -> dict[str, Any]:
    return call("write", path="answer", content=text)


DONE = {"text": "done"}


@pytest.mark.contract("S40", "S26")
def test_a_worker_has_a_session_and_a_receipt_of_its_own(work: Path, home: Path) -> None:
    session = run_agent(work, home, script(write("42"), DONE), options={"surface": "worker"})
    assert (session.exit_code, session.stdout) == (0, "done\n")
    assert (work / "answer").read_text() == "42"
    worker, root = (
        journal(home).receipts[::-1] if journal(home).receipts[0].role == "main" else journal(home).receipts
    )
    assert (root.session, root.parent, root.exit_code, root.valid) == ("main.1", None, 0, True)
    assert (worker.session, worker.role, worker.parent, worker.valid) == (
        "worker.1",
        "worker",
        "main.1",
        True,
    )
    assert (worker.claimed_total, root.claimed_total) == (240, None)
    assert journal(home).sessions == 2


def test_a_dispatcher_ends_as_its_worker_does(work: Path, home: Path) -> None:
    session = run_agent(work, home, script(write("42")), options={"surface": "worker"})
    assert session.exit_code == 2
    assert {receipt.exit_code for receipt in journal(home).receipts} == {2}


def test_a_signal_to_the_dispatcher_ends_and_seals_both(work: Path, home: Path) -> None:
    turns = script(call("bash", command="touch running; sleep 60"))
    with served(turns) as (_, _, base_url):
        env = agent_environment(work, home, base_url, options={"surface": "worker"})
        with start_agent(work, env) as process:
            assert process.stdin is not None
            process.stdin.close()
            process.stdin = None
            wait_for(work / "running")
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)
    assert process.returncode == 130
    ends = {receipt.role: (receipt.exit_code, receipt.valid) for receipt in journal(home).receipts}
    assert ends == {"main": (130, True), "worker": (143, True)}


@pytest.mark.contract("S43")
@pytest.mark.parametrize(
    ("turns", "max_attempts", "exit_code", "expected"),
    [
        # attempts, repairs, sealed repairs, solved, reason, skipped, unneeded
        ([write("42"), DONE], 3, 0, (1, 0, 0, True, "resolved", 0, 4)),
        ([write("1"), DONE, write("42"), DONE], 3, 0, (2, 1, 1, True, "resolved", 0, 2)),
        ([write("1"), DONE, write("2"), DONE], 2, 4, (2, 1, 1, False, "loop_bound_exhausted", 0, 0)),
        ([write("1"), DONE], 1, 4, (1, 0, 0, False, "loop_bound_exhausted", 0, 0)),
        ([write("1"), DONE, write("2")], 3, 4, (1, 1, 1, False, "loop_step_failed", 3, 0)),
        ([write("1")], 3, 4, (0, 0, 0, False, "loop_not_reached", 5, 0)),
    ],
    ids=["at once", "one repair", "bound", "bound of one", "repair fails", "work fails"],
)
def test_a_bounded_loop_says_why_it_ended(
    work: Path,
    home: Path,
    turns: list[dict[str, Any]],
    max_attempts: int,
    exit_code: int,
    expected: tuple[object, ...],
) -> None:
    options = {"loop": {"verify": VERIFY, "maxAttempts": max_attempts}}
    session = run_agent(work, home, script(*turns), options=options)
    assert session.exit_code == exit_code, session.stderr
    found = journal(home)
    (loop,) = found.loops
    assert (
        loop.attempts,
        loop.repairs,
        loop.repairs_sealed,
        loop.solved,
        loop.reason,
        loop.skipped,
        loop.unneeded,
    ) == expected
    assert all(receipt.valid for receipt in found.receipts)
    assert found.unsealed == 0


def test_a_repair_is_told_what_failed(work: Path, home: Path) -> None:
    turns = script(write("1"), DONE, write("42"), DONE)
    options = {"loop": {"verify": f"{VERIFY} || {{ echo wanted 42; exit 7; }}"}}
    session = run_agent(work, home, turns, prompt="Write the answer.", options=options)
    told = session.requests[2]["messages"][1]["content"]
    for words in ("Write the answer.", "exited 7", "wanted 42", VERIFY):
        assert words in told
