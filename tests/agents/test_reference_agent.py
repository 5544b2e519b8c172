"""The reference agent's loop: turns, ends, ledger, errors and signals (S48)."""

from __future__ import annotations

import json
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from agent_harness import (
    AGENT,
    MODEL,
    agent_environment,
    call,
    calls,
    read_ledger,
    run_agent,
    script,
    served,
    start_agent,
)


def test_a_session_does_what_it_is_told_and_reports(work: Path, home: Path) -> None:
    turns = script(call("write", path="a.txt", content="hello\n"), {"text": "It is written."})
    session = run_agent(work, home, turns, prompt="Write hello into a.txt. é")
    assert (session.exit_code, session.stdout, session.stderr) == (0, "It is written.\n", "")
    assert (work / "a.txt").read_text() == "hello\n"
    first, second = session.requests
    assert first["model"] == MODEL
    assert [message["role"] for message in first["messages"]] == ["system", "user"]
    assert first["messages"][1]["content"] == "Write hello into a.txt. é"
    asked, told = second["messages"][2:]
    assert asked["tool_calls"][0]["id"] == "call_1"
    assert told == {"role": "tool", "tool_call_id": "call_1", "content": "wrote 6 bytes to a.txt"}
    assert session.closed.traffic.requests == 2


@pytest.mark.contract("S48")
def test_six_tools_are_offered_with_schemas(work: Path, home: Path) -> None:
    (request,) = run_agent(work, home, script({"text": "no"})).requests
    assert [tool["function"]["name"] for tool in request["tools"]] == [
        *("read", "write", "edit", "bash", "glob", "grep"),
    ]
    for tool in request["tools"]:
        schema = tool["function"]["parameters"]
        assert tool["type"] == "function"
        assert schema["type"] == "object"
        assert set(schema["required"]) <= set(schema["properties"])
        assert schema["additionalProperties"] is False


@pytest.mark.contract("S48")
def test_the_ledger_has_the_whole_session_in_order(work: Path, home: Path) -> None:
    batch = calls(("write", {"path": "a", "content": "x"}), ("read", {"path": "missing"}))
    session = run_agent(work, home, script(batch, {"text": "done"}))
    assert [entry["type"] for entry in session.ledger] == [
        *("session", "system", "user", "assistant", "usage", "tool", "tool", "assistant", "usage", "receipt"),
    ]
    assert [entry["seq"] for entry in session.ledger] == list(range(1, 11))
    assert {entry["session"] for entry in session.ledger} == {"main.1"}
    usage = session.ledger[4]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (100, 20, 120)
    tools = [entry for entry in session.ledger if entry["type"] == "tool"]
    assert [(entry["call_id"], entry["error"]) for entry in tools] == [("call_1", False), ("call_2", True)]
    assert (session.ledger[-1]["reason"], session.ledger[-1]["text"]) == ("completed", "done")
    path = home / ".boxeval" / "session.jsonl"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert b"boxeval-placeholder" not in path.read_bytes()


def test_a_ledger_is_only_appended_to(work: Path, home: Path) -> None:
    run_agent(work, home, script({"text": "one"}))
    before = (home / ".boxeval" / "session.jsonl").read_bytes()
    run_agent(work, home, script({"text": "two"}))
    after = (home / ".boxeval" / "session.jsonl").read_bytes()
    assert after.startswith(before)
    assert len(after) > len(before)


def test_a_home_that_cannot_be_written_is_one_warning(work: Path, home: Path) -> None:
    home.write_text("not a directory")
    session = run_agent(work, home, script(call("bash", command="true"), {"text": "done"}))
    assert (session.exit_code, session.stdout) == (0, "done\n")
    assert session.stderr.count("not recorded") == 1


@pytest.mark.contract("S48")
def test_after_twelve_turns_it_gives_up(work: Path, home: Path) -> None:
    session = run_agent(work, home, script(*([call("bash", command="echo x >> log")] * 13)))
    assert session.exit_code == 3
    assert "12 turns" in session.stderr
    assert session.stdout == ""
    assert session.closed.traffic.requests == 12
    assert (work / "log").read_text() == "x\n" * 12
    assert session.ledger[-1]["reason"] == "max_turns"


def test_a_script_that_runs_out_ends_it_without_a_retry(work: Path, home: Path) -> None:
    session = run_agent(work, home, script(call("bash", command="true")))
    assert session.exit_code == 2
    assert "script_exhausted" in session.stderr
    assert len(session.requests) == 2
    assert session.ledger[-1]["reason"] == "model_error"


@pytest.mark.contract("S48")
def test_calls_of_a_batch_run_side_by_side(work: Path, home: Path) -> None:
    # Each command waits for what the other one makes: in sequence, neither would end.
    def meet(mine: str, other: str) -> tuple[str, dict[str, object]]:
        command = f"touch {mine}; for i in $(seq 200); do test -e {other} && exit 0; sleep 0.05; done; exit 1"
        return "bash", {"command": command}

    session = run_agent(work, home, script(calls(meet("a", "b"), meet("b", "a")), {"text": "met"}))
    assert [result.splitlines()[0] for result in session.results] == ["exit code 0"] * 2


def test_edits_of_one_file_in_a_batch_all_count(work: Path, home: Path) -> None:
    words = [f"<{n}>" for n in range(8)]
    (work / "f").write_text("".join(words))
    batch = calls(*(("edit", {"path": "f", "old": word, "new": word.upper() + "!"}) for word in words))
    run_agent(work, home, script(batch, {"text": "done"}))
    assert (work / "f").read_text() == "".join(word + "!" for word in words)


@pytest.mark.contract("S48")
def test_a_read_only_session_is_refused_and_can_adapt(work: Path, home: Path) -> None:
    (work / "a").write_text("kept")
    batch = calls(
        ("write", {"path": "a", "content": "x"}),
        ("edit", {"path": "a", "old": "kept", "new": "x"}),
        ("bash", {"command": "rm a"}),
    )
    turns = script(batch, call("read", path="a"), {"text": "I could only read."})
    session = run_agent(work, home, turns, permissions="read-only")
    assert session.exit_code == 0
    *refused, read = session.results
    assert all("permission denied: " in result for result in refused)
    assert read == "kept"
    assert [path.name for path in work.iterdir()] == ["a"]
    assert (work / "a").read_text() == "kept"


@pytest.mark.parametrize("missing", ["OPENAI_BASE_URL", "OPENAI_API_KEY", "BOXEVAL_MODEL"])
def test_without_a_model_it_names_what_is_missing(work: Path, home: Path, missing: str) -> None:
    env = agent_environment(work, home, "http://127.0.0.1:1/v1")
    del env[missing]
    with start_agent(work, env) as process:
        _, err = process.communicate(b"hi", timeout=30)
    assert (process.returncode, err.decode()) == (2, f"agent: {missing} is not set\n")


class CannedServer:
    """Answers every HTTP request with the next of some canned bytes, then closes that connection."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers)
        self.asked = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            with peer:
                self.asked += 1
                peer.settimeout(10)
                self._read_request(peer)
                peer.sendall(self._answers.pop(0))

    @staticmethod
    def _read_request(peer: socket.socket) -> None:
        data = b""
        while b"\r\n\r\n" not in data:
            data += peer.recv(65_536)
        head, _, body = data.partition(b"\r\n\r\n")
        (length,) = (
            int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")
        )
        while len(body) < length:
            body += peer.recv(65_536)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()


def http(status: int, body: bytes) -> bytes:
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


GOOD = http(200, json.dumps({"choices": [{"message": {"role": "assistant", "content": "ok"}}]}).encode())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answers", "asked", "exit_code", "said"),
    [
        ([http(503, b"busy"), b"", GOOD], 3, 0, ""),
        ([http(500, b"no"), http(500, b"no"), http(502, b"bad gateway")], 3, 2, "HTTP 502: bad gateway"),
        ([b"", b"", b""], 3, 2, "no answer"),
        ([b"not http\r\n\r\n"] * 3, 3, 2, "no answer"),
        ([http(429, b'{"error": {"code": "slow", "message": "down"}}')], 1, 2, "HTTP 429: slow: down"),
        ([http(404, b'{"error": null}')], 1, 2, "HTTP 404"),
        ([http(200, b"<html>")], 1, 2, "no chat completion"),
        ([http(200, b"[" * 100_000)], 1, 2, "no chat completion"),
        ([http(200, b'{"choices": []}')], 1, 2, "no chat completion"),
        ([http(200, b'{"choices": [{"message": null}]}')], 1, 2, "no chat completion"),
        ([http(200, b'{"choices": [{"message": {"content": 5}}]}')], 1, 2, "no chat completion"),
        ([http(200, b'{"choices": [{"message": {"tool_calls": [{"id": 1}]}}]}')], 1, 2, "no chat completion"),
        ([http(200, b'{"choices": [{"message": {"tool_calls": 5}}]}')], 1, 2, "no chat completion"),
    ],
)
def test_retries_are_few_and_nonsense_is_an_error(
    work: Path, home: Path, answers: list[bytes], asked: int, exit_code: int, said: str
) -> None:
    server = CannedServer(*answers)
    try:
        with start_agent(work, agent_environment(work, home, server.url)) as process:
            _, err = process.communicate(b"hi", timeout=60)
    finally:
        server.close()
    assert (process.returncode, server.asked) == (exit_code, asked)
    assert said in err.decode()
    assert err.count(b"\n") == (1 if exit_code else 0)


def test_an_answer_with_a_lone_surrogate_is_shown_escaped(work: Path, home: Path) -> None:
    body = b'{"choices": [{"message": {"content": "\\ud800"}}]}'
    server = CannedServer(http(200, body))
    try:
        with start_agent(work, agent_environment(work, home, server.url)) as process:
            out, _ = process.communicate(b"\xff\xfe", timeout=60)
    finally:
        server.close()
    assert (process.returncode, out) == (0, b"\\ud800\n")


@pytest.mark.parametrize(
    ("number", "exit_code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_it_and_its_commands(
    work: Path, home: Path, number: signal.Signals, exit_code: int
) -> None:
    turns = script(call("bash", command="echo $$ > pid; exec sleep 60"), {"text": "never"})
    with served(turns) as (_, _, base_url):
        with start_agent(work, agent_environment(work, home, base_url)) as process:
            assert process.stdin is not None
            process.stdin.write(b"go")
            process.stdin.close()
            process.stdin = None
            sleeper = wait_for(work / "pid")
            started = time.monotonic()
            process.send_signal(number)
            _, err = process.communicate(timeout=30)
        assert time.monotonic() - started < 45
    assert process.returncode == exit_code
    assert f"signal {int(number)}" in err.decode()
    assert not Path(f"/proc/{sleeper}").exists()
    assert read_ledger(home)[-1]["reason"] == "signal"


NOTED = """
import os, signal, sys, threading
sys.path.insert(0, sys.argv[1])
from interrupts import Stopped, check, interruptible, listen
def raised(action):
    try:
        action()
    except Stopped as stopped:
        print(stopped.number)
def wait():
    with interruptible():
        os.kill(os.getpid(), signal.SIGHUP)
        print("not reached")
listen()
check()
raised(wait)
os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=check).start()
raised(check)
"""


@pytest.mark.contract("S42")
def test_a_signal_is_heeded_only_where_nothing_is_lost_by_it() -> None:
    """A handler that raises anywhere leaves locks held and commands running, once in some hundred interruptions."""
    arguments = [sys.executable, "-I", "-B", "-c", NOTED, str(AGENT)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=60)
    # The first signal is the one that it ends by, and no other thread is ended.
    assert (done.stdout, done.stderr) == ("1\n1\n", "")


def wait_for(path: Path) -> int:
    """The number that a file holds once it is written."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if path.exists() and (text := path.read_text()).endswith("\n"):
            return int(text)
        time.sleep(0.02)
    raise AssertionError(f"{path} never came")
