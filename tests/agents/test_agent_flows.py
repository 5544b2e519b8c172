"""What happens around the reference agent's loop: steering, abort, stop gate, compaction, MCP, permissions (S52)."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path

import pytest
from agent_harness import (
    AGENT,
    agent_environment,
    call,
    calls,
    read_ledger,
    run_agent,
    script,
    served,
    start_agent,
)

from boxeval.rules.journal import read_journal
from boxeval.spec.journal import Journal

NOTES = Path(__file__).with_name("mcp_notes.py")


def journal(home: Path) -> Journal:
    return read_journal((home / ".boxeval" / "session.jsonl").read_bytes())


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.02)


@pytest.mark.contract("S52")
def test_steering_reaches_the_model_before_its_next_turn(work: Path, home: Path) -> None:
    inbox = home / ".boxeval" / "inbox"
    inbox.mkdir(parents=True)
    turns = script(
        call("bash", command="touch running; while ! test -e go; do sleep 0.02; done"), {"text": "In French."}
    )
    with served(turns) as (gateway, token, base_url):
        with start_agent(work, agent_environment(work, home, base_url)) as process:
            assert process.stdin is not None
            process.stdin.write(b"Write a letter.")
            process.stdin.close()
            process.stdin = None
            wait_for(work / "running")
            (inbox / "1.txt").write_text("In French, please.")
            (work / "go").touch()
            process.communicate(timeout=30)
        log = gateway.close_route(token).log
    first, second = (json.loads(line)["request"]["messages"] for line in log.splitlines())
    assert [message["role"] for message in first] == ["system", "user"]
    assert second[-1] == {"role": "user", "content": "In French, please."}
    assert [message["role"] for message in second[-2:]] == ["tool", "user"]
    assert [path.name for path in inbox.iterdir()] == ["1.taken"]


@pytest.mark.contract("S52")
def test_an_abort_keeps_what_was_made_and_seals_the_session(work: Path, home: Path) -> None:
    turns = script(
        call("write", path="half.txt", content="half\n"), call("bash", command="touch running; sleep 60")
    )
    with (
        served(turns) as (_, _, base_url),
        start_agent(work, agent_environment(work, home, base_url)) as process,
    ):
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
        wait_for(work / "running")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 143
    assert (work / "half.txt").read_text() == "half\n"
    (receipt,) = journal(home).receipts
    assert (receipt.reason, receipt.exit_code, receipt.valid) == ("signal", 143, True)
    assert journal(home).calls_unmatched == 1  # the command that was running has no result


@pytest.mark.contract("S52")
def test_the_stop_gate_sends_an_unverified_report_back_once(work: Path, home: Path) -> None:
    turns = script(call("write", path="a", content="x"), {"text": "Done."}, {"text": "It cannot be checked."})
    session = run_agent(work, home, turns, options={"stopGate": True})
    assert (session.exit_code, session.stdout) == (0, "It cannot be checked.\n")
    (objection,) = [entry["text"] for entry in session.ledger if entry.get("gate")]
    assert session.requests[-1]["messages"][-1] == {"role": "user", "content": objection}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("check", "asked"),
    [("test -e a", 3), ("test -e b", 4)],
    ids=["a check that succeeds", "a check that fails"],
)
def test_the_stop_gate_wants_a_check_that_succeeds(work: Path, home: Path, check: str, asked: int) -> None:
    turns = script(
        call("write", path="a", content="x"),
        call("bash", command=check),
        {"text": "Done."},
        {"text": "Done."},
    )
    session = run_agent(work, home, turns, options={"stopGate": True})
    assert len(session.requests) == asked


@pytest.mark.slow
def test_a_report_without_changes_needs_no_check(work: Path, home: Path) -> None:
    session = run_agent(work, home, script({"text": "Nothing to do."}), options={"stopGate": True})
    assert session.stdout == "Nothing to do.\n"


@pytest.mark.contract("S52", "S28")
def test_compaction_shortens_what_is_sent_and_nothing_that_was_written(work: Path, home: Path) -> None:
    (work / "long.txt").write_text("The code word is heron-4711.\n" + "filler " * 400)
    turns = script(
        call("read", path="long.txt"),
        {"text": "The task is to find the code word. It is heron-4711."},
        {"text": "The code word is heron-4711."},
    )
    session = run_agent(work, home, turns, prompt="What is the code word?", options={"contextTokens": 600})
    assert (session.exit_code, session.stdout) == (0, "The code word is heron-4711.\n")
    _, summed, last = session.requests
    assert "tools" not in summed
    assert "filler" in json.dumps(summed)
    assert [message["role"] for message in last["messages"]] == ["system", "user"]
    assert "filler" not in json.dumps(last)
    kinds = [entry["type"] for entry in session.ledger]
    assert kinds.index("tool") < kinds.index("compaction")
    assert "filler" in next(entry["text"] for entry in session.ledger if entry["type"] == "tool")
    found = journal(home)
    assert (found.compactions, found.summaries, found.answered_from_before) == (1, 1, True)


@pytest.mark.slow
def test_an_answer_without_the_fact_is_not_from_before_a_compaction(work: Path, home: Path) -> None:
    (work / "long.txt").write_text("The code word is heron-4711.\n" + "filler " * 400)
    turns = script(call("read", path="long.txt"), {"text": "There was a file."}, {"text": "I forgot."})
    run_agent(work, home, turns, options={"contextTokens": 600})
    assert journal(home).answered_from_before is False


@pytest.mark.contract("S28")
def test_a_session_goes_on_from_an_earlier_one_and_only_appends(work: Path, home: Path) -> None:
    path = home / ".boxeval" / "session.jsonl"
    turns = script(call("read", path="missing"), {"text": "Not there."})
    run_agent(work, home, turns, prompt="My number is 31415.")
    before = path.read_bytes()
    session = run_agent(
        work, home, script({"text": "31415"}), prompt="What is it?", options={"continueSession": True}
    )
    assert path.read_bytes().startswith(before)
    (request,) = session.requests
    roles = [message["role"] for message in request["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert request["messages"][1]["content"] == "My number is 31415."
    found = journal(home)
    assert (found.sessions, [receipt.session for receipt in found.receipts]) == (2, ["main.1", "main.2"])
    assert (found.calls_unmatched, found.messages_between) == (0, 0)
    fresh = run_agent(work, home, script({"text": "Who?"}), prompt="Again?")
    assert [message["role"] for message in fresh.requests[0]["messages"]] == ["system", "user"]


@pytest.mark.slow
def test_a_killed_session_can_be_gone_on_from(work: Path, home: Path) -> None:
    turns = script(call("bash", command="touch running; sleep 60"))
    with (
        served(turns) as (_, _, base_url),
        start_agent(work, agent_environment(work, home, base_url)) as process,
    ):
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
        wait_for(work / "running")
        process.kill()
        process.communicate(timeout=30)
    assert journal(home).unsealed == 1
    session = run_agent(work, home, script({"text": "I go on."}), options={"continueSession": True})
    assert session.exit_code == 0
    assert session.requests[0]["messages"][-2]["content"] == "error: interrupted"


@pytest.mark.contract("S52")
def test_mcp_tools_are_listed_called_and_leave_an_artifact(work: Path, home: Path) -> None:
    turns = script(
        calls(
            ("notes__save", {"name": "note.txt", "text": "by way of MCP\n"}), ("notes__save", {"name": "x"})
        ),
        call("read", path="note.txt"),
        {"text": "Saved."},
    )
    options = {"mcp": {"notes": [sys.executable, str(NOTES)]}}
    session = run_agent(work, home, turns, options=options)
    assert (session.exit_code, session.stderr) == (0, "")
    offered = {tool["function"]["name"]: tool["function"] for tool in session.requests[0]["tools"]}
    assert len(offered) == 7
    assert offered["notes__save"]["parameters"]["required"] == ["name", "text"]
    assert session.results == ["saved note.txt", "error: text is missing", "by way of MCP\n"]
    assert (work / "note.txt").read_text() == "by way of MCP\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["/nowhere"], "notes cannot be started"),
        (["true"], "notes is gone"),
        (["sh", "-c", "echo no json; sleep 60"], "notes does not speak the protocol"),
    ],
)
def test_a_broken_mcp_server_ends_the_session_with_one_line(
    work: Path, home: Path, command: list[str], said: str
) -> None:
    session = run_agent(work, home, script({"text": "x"}), options={"mcp": {"notes": command}})
    assert session.exit_code == 2
    assert said in session.stderr
    assert session.stderr.count("\n") == 1
    assert journal(home).receipts[0].reason == "mcp_error"


@pytest.mark.contract("S52")
def test_a_read_only_session_leaves_nothing_on_disk(work: Path, home: Path) -> None:
    turns = script(
        calls(
            ("write", {"path": "new", "content": "x"}),
            ("bash", {"command": "touch new"}),
            ("notes__save", {"name": "new", "text": "x"}),
        ),
        {"text": "I may not."},
    )
    options = {"mcp": {"notes": [sys.executable, str(NOTES)]}}
    session = run_agent(work, home, turns, permissions="read-only", options=options)
    assert all(result.startswith("error: permission denied: ") for result in session.results)
    assert list(work.iterdir()) == []
    found = journal(home)
    assert (found.tools_failed, found.tools_blocked) == (3, 3)


@pytest.mark.slow
@pytest.mark.parametrize("options", ["[]", "{", '{"nonsense": 1}', '{"loop": {"verify": "x", "more": 1}}'])
def test_options_that_make_no_sense_are_one_line(work: Path, home: Path, options: str) -> None:
    env = {**agent_environment(work, home, "http://127.0.0.1:1/v1"), "BOXEVAL_OPTIONS": options}
    with start_agent(work, env) as process:
        _, err = process.communicate(b"", timeout=30)
    assert process.returncode == 2
    assert err.startswith(b"agent: BOXEVAL_OPTIONS: ")
    assert err.count(b"\n") == 1
    assert read_ledger(home) == []


def test_the_agent_needs_nothing_but_the_standard_library() -> None:
    own = {path.stem for path in AGENT.glob("*.py")}
    for path in AGENT.glob("*.py"):
        for line in path.read_text().splitlines():
            if line.startswith(("import ", "from ")):
                module = line.split()[1].partition(".")[0]
                assert module in sys.stdlib_module_names | own, f"{path.name}: {line}"
