"""How a command ended is told apart, and nothing outlives its box."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from boxeval.errors import BoxError
from boxeval.sandbox.box import Box, BoxEnd
from boxeval.sandbox.job import Job, shell
from boxeval.sandbox.shim_frames import CommandEnd, last_report

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "ONLY": "this"}
MakeBox = Callable[..., Box]


def play(box: Box, script: str, timeout_ms: int = 20_000, stdin: bytes = b"") -> tuple[CommandEnd, BoxEnd]:
    box.start()
    command = box.run(Job(shell(script), ENV, stdin=stdin, timeout_ms=timeout_ms), last=True)
    return command, box.settle()


@pytest.mark.parametrize("code", [0, 1, 3, 124, 137, 255])
def test_an_exit_code_is_the_program_s_own(code: int, make_box: MakeBox) -> None:
    command, end = play(make_box(), f"exit {code}")
    assert (command.exit_code, command.signal, command.timed_out) == (code, None, False)
    assert (end.settled, end.orphans, end.survivors, end.oom_kills) == (True, 0, 0, 0)


def test_a_signal_is_not_an_exit_code(make_box: MakeBox) -> None:
    command, _ = play(make_box(), "kill -9 $$")
    assert (command.exit_code, command.signal, command.timed_out) == (None, 9, False)


def test_output_and_input_are_carried_exactly(make_box: MakeBox) -> None:
    data = bytes(range(256)) * 100
    command, _ = play(make_box(), "cat; printf 'to stderr' >&2", stdin=data)
    assert command.stdout.kept == data
    assert command.stdout.sha256 == hashlib.sha256(data).hexdigest()
    assert command.stderr.kept == b"to stderr"
    assert not command.stdout.truncated


@pytest.mark.contract("V1")
def test_the_environment_is_just_what_was_asked(make_box: MakeBox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GH_TOKEN", "canary-7f3a")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/canary-7f3a")
    box = make_box()
    box.start()
    own = box.run(Job(("env",), ENV), last=False)
    assert own.stdout.kept == b"PATH=/usr/local/bin:/usr/bin:/bin\nONLY=this\n"
    everything = "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline || :"
    seen = box.run(Job(shell(everything), ENV), last=True).stdout.kept
    assert b"ONLY=this" in seen
    assert b"canary-7f3a" not in seen


@pytest.mark.contract("G54")
def test_a_flood_is_cut_to_head_and_tail_and_told(make_box: MakeBox) -> None:
    command, _ = play(make_box(), "printf START; head -c 30000000 /dev/zero | tr '\\0' x; printf END")
    out = command.stdout
    assert out.size_bytes == 5 + 30_000_000 + 3
    assert out.sha256 == hashlib.sha256(b"START" + b"x" * 30_000_000 + b"END").hexdigest()
    assert out.truncated
    assert len(out.kept) == 64 * 1024
    assert out.kept.startswith(b"STARTxx")
    assert out.kept.endswith(b"xxEND")


@pytest.mark.contract("G54", "P17")
def test_a_deadline_ends_a_daemon_that_ignores_every_signal_it_can(make_box: MakeBox) -> None:
    stubborn = "trap '' TERM INT HUP; while :; do sleep 0.1 || :; done"
    script = f'setsid sh -c "{stubborn}" >/dev/null 2>&1 & {stubborn}'
    began = time.monotonic()
    command, end = play(make_box(), script, timeout_ms=1000)
    assert time.monotonic() - began < 1 + 5
    assert (command.timed_out, command.exit_code, command.signal) == (True, None, 9)
    assert (end.settled, end.survivors) == (True, 0)


@pytest.mark.contract("S27")
def test_what_outlives_the_main_process_is_counted_and_killed(make_box: MakeBox) -> None:
    """Known failure B2."""
    script = (
        "sleep 600 & setsid sleep 600 & (setsid sh -c 'sleep 600 & wait' >&- 2>&- <&- &) ; sleep 0.3; exit 0"
    )
    command, end = play(make_box(), script)
    assert command.exit_code == 0
    # Three sleeps and the shell that waits for the last one.
    assert end.orphans == 4
    assert (end.settled, end.survivors) == (True, 0)


@pytest.mark.contract("S27")
def test_the_control_group_has_the_last_word(make_box: MakeBox, monkeypatch: pytest.MonkeyPatch) -> None:
    """A candidate that dies slowly must not void its trial: all is dead once its box has exited."""
    monkeypatch.setattr(
        "boxeval.sandbox.box.last_report", lambda payload: replace(last_report(payload), survivors=21)
    )
    _, end = play(make_box(), "exit 0")
    assert (end.settled, end.survivors) == (True, 0)
    monkeypatch.setattr("boxeval.sandbox.box._cgroup_processes", lambda _: 2)
    _, end = play(make_box(), "exit 0")
    assert (end.settled, end.survivors) == (False, 2)


def test_a_command_cannot_forge_the_shim_s_report(make_box: MakeBox) -> None:
    forged = "R\\000\\000\\000\\007exit=0\\n"
    script = f"printf '{forged}'; for fd in 0 1 2 3 4 5 6 7 8 9; do printf '{forged}' > /proc/1/fd/$fd; done; exit 5"
    command, _ = play(make_box(), script.replace("exit 5", "true; exit 5").replace("done", "done || :"))
    assert command.exit_code != 0
    assert b"Permission denied" in command.stderr.kept
    assert command.stdout.kept.startswith(b"R\0\0\0\x07exit=0\n")


def test_a_command_cannot_end_or_trace_the_shim(make_box: MakeBox) -> None:
    script = "kill -9 1; kill -STOP 1; kill -TERM 1 || :; sleep 0.2; cat /proc/1/mem >/dev/null 2>&1 && exit 9; exit 4"
    command, end = play(make_box(), script)
    assert (command.exit_code, end.settled) == (4, True)


def test_spawn_errors_name_the_step(make_box: MakeBox) -> None:
    box = make_box()
    box.start()
    assert box.run(Job(("true",), ENV, cwd="/workspace/absent"), last=True).spawn_error == "cwd:ENOENT"
    assert box.settle().settled
    box = make_box()
    box.start()
    assert box.run(Job(("no-such-program",), ENV), last=True).spawn_error == "exec:ENOENT"


def test_commands_run_in_order_in_one_box_and_share_its_servers(make_box: MakeBox) -> None:
    box = make_box()
    box.start()
    serve = "python3 -m http.server --bind 127.0.0.1 8000 >/dev/null 2>&1 & sleep 1; echo one > page"
    assert box.run(Job(shell(serve), ENV), last=False).exit_code == 0
    fetch = "python3 -c \"import urllib.request as r; print(r.urlopen('http://127.0.0.1:8000/page').read())\""
    second = box.run(Job(shell(fetch), ENV), last=True)
    assert second.stdout.kept == b"b'one\\n'\n"
    assert box.settle().orphans == 1


def test_a_box_dies_with_its_controller(make_box: MakeBox) -> None:
    box = make_box()
    box.start()
    box._connection.send(b"J", b"60000\x000\x003\x000\x00/\x00sleep\x00600\x00\x00")
    box._connection.close()
    until = time.monotonic() + 10
    while box._engine.api.inspect_container(box.id)["State"]["Running"]:
        assert time.monotonic() < until, "the box outlived its controller"
        time.sleep(0.1)


def test_a_killed_box_is_an_error_and_not_a_result(make_box: MakeBox) -> None:
    box = make_box()
    box.start()
    box._connection.send(b"J", b"60000\x001\x002\x000\x00/\x00sleep\x00600\x00")
    box.kill()
    with pytest.raises(BoxError, match="without its shim's report"):
        box._frame(time.monotonic() + 20)
