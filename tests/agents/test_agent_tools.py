"""The six tools of the reference agent: results, mistakes, bounds, and staying in the workspace."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from agent_harness import calls, run_agent, script

LIMIT = 50 * 1024


class Tools:
    """Runs a batch of tool calls in one session and gives back the results."""

    def __init__(self, work: Path, home: Path) -> None:
        self.work = work
        self._home = home

    def __call__(self, *pairs: tuple[str, dict[str, Any]]) -> list[str]:
        session = run_agent(self.work, self._home, script(*(calls(pair) for pair in pairs), {"text": "done"}))
        assert session.exit_code == 0, session.stderr
        return session.results[-len(pairs) :]  # a ledger goes on from session to session

    def one(self, tool: str, **given: Any) -> str:
        (result,) = self((tool, given))
        return result


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    work = tmp_path / "workspace"
    work.mkdir()
    return Tools(work, tmp_path / "agent-home")


@pytest.mark.contract("S48")
def test_read_gives_text_or_some_of_its_lines(tools: Tools) -> None:
    (tools.work / "f").write_text("a\nb\nc\nd")
    whole, some, rest = tools(
        ("read", {"path": "f"}),
        ("read", {"path": "f", "offset": 2, "limit": 2}),
        ("read", {"path": str(tools.work / "f"), "offset": 4}),
    )
    assert (whole, some, rest) == ("a\nb\nc\nd", "b\nc\n", "d")


def test_read_of_bytes_that_are_no_text_replaces_them(tools: Tools) -> None:
    (tools.work / "f").write_bytes(b"a\xff\xfeb")
    assert tools.one("read", path="f") == "a\ufffd\ufffdb"


@pytest.mark.contract("S48")
def test_write_makes_directories_and_keeps_a_mode(tools: Tools) -> None:
    (tools.work / "run.sh").write_text("old")
    (tools.work / "run.sh").chmod(0o755)
    results = tools(
        ("write", {"path": "a/b/c.txt", "content": "é\n"}), ("write", {"path": "run.sh", "content": "new"})
    )
    assert results == ["wrote 3 bytes to a/b/c.txt", "wrote 3 bytes to run.sh"]
    assert (tools.work / "a/b/c.txt").read_bytes() == b"\xc3\xa9\n"
    assert (tools.work / "run.sh").read_text() == "new"
    assert (tools.work / "run.sh").stat().st_mode & 0o777 == 0o755
    assert not list(tools.work.rglob(".draft*"))


@pytest.mark.contract("S48")
def test_edit_wants_exactly_one_place_unless_told_otherwise(tools: Tools) -> None:
    (tools.work / "f").write_text("one two two")
    results = tools(
        ("edit", {"path": "f", "old": "three", "new": "x"}),
        ("edit", {"path": "f", "old": "two", "new": "x"}),
        ("edit", {"path": "f", "old": "", "new": "x"}),
        ("edit", {"path": "f", "old": "one", "new": "1"}),
        ("edit", {"path": "f", "old": "two", "new": "2", "all": True}),
    )
    assert [result.startswith("error: ") for result in results] == [True, True, True, False, False]
    assert "2 times" in results[1]
    assert results[3:] == ["replaced 1 time in f", "replaced 2 times in f"]
    assert (tools.work / "f").read_text() == "1 2 2"


@pytest.mark.contract("S48")
def test_bash_runs_in_the_workspace_and_tells_the_exit_code(tools: Tools) -> None:
    out, failed = tools(
        ("bash", {"command": "pwd; echo oops >&2"}),
        ("bash", {"command": "exit 7"}),
    )
    assert out == f"exit code 0\n{tools.work}\noops\n"
    assert failed == "exit code 7\n"


@pytest.mark.slow
def test_bash_has_a_timeout_that_ends_its_whole_group(tools: Tools) -> None:
    started = time.monotonic()
    result = tools.one("bash", command="sleep 60 & echo $! > pid; echo before; wait", timeout_s=1)
    assert time.monotonic() - started < 45
    assert result == "error: killed after 1 s\nbefore\n"
    assert not Path(f"/proc/{(tools.work / 'pid').read_text().strip()}/cwd").exists()


@pytest.mark.slow
def test_bash_does_not_wait_for_what_it_left_behind(tools: Tools) -> None:
    started = time.monotonic()
    stray = "setsid sh -c 'echo $$ > d; mv d pid; exec sleep 120' & until test -e pid; do sleep 0.05; done"
    result = tools.one("bash", command=f"sleep 120 & {stray}; echo done")
    os.kill(int((tools.work / "pid").read_text()), signal.SIGKILL)
    assert time.monotonic() - started < 60
    assert result == "exit code 0\ndone\n"


def test_long_output_keeps_head_and_tail(tools: Tools) -> None:
    result = tools.one("bash", command="echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last")
    assert len(result.encode()) <= LIMIT
    assert result.startswith("exit code 0\nfirst\nxxx")
    assert result.endswith("xxx\nlast\n")
    assert "bytes left out" in result


def test_every_result_is_bounded(tools: Tools) -> None:
    (tools.work / "f").write_text("é" * 100_000)
    for name in range(300):
        (tools.work / f"{name:03}{'n' * 200}").touch()
    for result in tools(
        ("read", {"path": "f"}),
        ("grep", {"pattern": "é"}),
        ("glob", {"pattern": "*"}),
        ("read", {"path": "x" * 200_000}),
    ):
        assert len(result.encode()) <= LIMIT


@pytest.mark.contract("S48")
def test_glob_lists_files_in_order(tools: Tools) -> None:
    for name in ("b.py", "a.py", "d/c.py", "d/e.txt"):
        (tools.work / name).parent.mkdir(exist_ok=True)
        (tools.work / name).touch()
    everything, below, none, absolute, empty = tools(
        ("glob", {"pattern": "**/*.py"}),
        ("glob", {"pattern": "*", "path": "d"}),
        ("glob", {"pattern": "*.rs"}),
        ("glob", {"pattern": "/etc/*"}),
        ("glob", {"pattern": ""}),
    )
    assert everything == "a.py\nb.py\nd/c.py"
    assert below == "d/c.py\nd/e.txt"
    assert none == "no files found"
    assert absolute.startswith("error: ") and empty.startswith("error: ")


@pytest.mark.contract("S48")
def test_grep_finds_lines_with_file_and_number(tools: Tools) -> None:
    (tools.work / "d").mkdir()
    (tools.work / "a.txt").write_text("one\ntwo\n")
    (tools.work / "d" / "b.md").write_text("two two\n")
    (tools.work / "binary").write_bytes(b"two\0two")
    both, filtered, single, none, wrong = tools(
        ("grep", {"pattern": "^tw"}),
        ("grep", {"pattern": "two", "glob": "*.md"}),
        ("grep", {"pattern": "o", "path": "a.txt"}),
        ("grep", {"pattern": "three"}),
        ("grep", {"pattern": "("}),
    )
    assert both == "a.txt:2:two\nd/b.md:1:two two"
    assert filtered == "d/b.md:1:two two"
    assert single == "a.txt:1:one\na.txt:2:two"
    assert none == "no matches"
    assert wrong.startswith("error: pattern: ")


def test_file_tools_stay_in_the_workspace(tools: Tools, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (tools.work / "way-out").symlink_to(outside)
    (tools.work / "link").symlink_to(outside / "secret")
    (tools.work / "loop").symlink_to("loop")
    refused = tools(
        ("read", {"path": "../outside/secret"}),
        ("read", {"path": str(outside / "secret")}),
        ("read", {"path": "link"}),
        ("write", {"path": "way-out/new", "content": "x"}),
        ("write", {"path": "../new", "content": "x"}),
        ("edit", {"path": "link", "old": "secret", "new": "x"}),
        ("grep", {"pattern": "secret", "path": "way-out"}),
        ("glob", {"pattern": "*", "path": ".."}),
        ("read", {"path": "/workspace-not"}),
        ("read", {"path": "loop"}),
        ("read", {"path": "a\0b"}),
    )
    assert all(result.startswith("error: permission denied: ") for result in refused[:9])
    assert all(result.startswith("error: ") for result in refused[9:])
    open_ended = tools(
        ("grep", {"pattern": "secret"}),
        ("glob", {"pattern": "**/*"}),
        ("glob", {"pattern": "../outside/*"}),
        ("glob", {"pattern": "way-out/*"}),
    )
    assert open_ended == ["no matches", *["no files found"] * 3]
    assert [path.name for path in outside.iterdir()] == ["secret"]
    assert (outside / "secret").read_text() == "secret"


def test_what_is_no_regular_file_is_refused_at_once(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tools.work / "fifo")
    (tools.work / "d").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(tools.work)  # the path of a socket may be 107 bytes long
        server.bind("socket")
        results = tools(
            ("read", {"path": "fifo"}),
            ("read", {"path": "socket"}),
            ("read", {"path": "d"}),
            ("write", {"path": "fifo", "content": "x"}),
            ("write", {"path": "d", "content": "x"}),
            ("grep", {"pattern": "x"}),
        )
    assert all(result.startswith("error: ") for result in results[:5])
    assert results[5] == "no matches"


def test_a_file_over_eight_mib_is_refused(tools: Tools) -> None:
    with (tools.work / "big").open("wb") as file:
        file.truncate(8 * 1024 * 1024 + 1)
    assert "8388609 bytes" in tools.one("read", path="big")


@pytest.mark.parametrize(
    ("tool", "given", "said"),
    [
        ("chmod", {}, "there is no tool chmod; there are read, write, edit, bash, glob, grep"),
        ("read", {}, "path: is missing"),
        ("read", {"path": "f", "colour": "red"}, "colour: is unknown; there are path, offset, limit"),
        ("read", {"path": 5}, "path: must be of type string"),
        ("read", {"path": ["f"]}, "path: must be of type string"),
        ("read", {"path": "f", "offset": True}, "offset: must be of type integer"),
        ("read", {"path": "f", "offset": 0}, "offset: must be at least 1"),
        ("edit", {"path": "f", "old": "a", "new": "b", "all": 1}, "all: must be of type boolean"),
        ("read", {"path": "none"}, "No such file or directory"),
        ("bash", {"command": "a\0b"}, "ValueError: embedded null byte"),
    ],
)
def test_a_mistake_is_an_answer(tools: Tools, tool: str, given: dict[str, Any], said: str) -> None:
    assert tools.one(tool, **given) == f"error: {said}"
