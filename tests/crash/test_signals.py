"""Signals while boxes live, on a terminal: what is sealed, what is left, and the terminal's state."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from terminals import SHOWN, Terminal

from boxeval.receipts.trust import Trust
from boxeval.receipts.verify import VerifiedRun, verify
from boxeval.sandbox.engine import Engine
from boxeval.sandbox.ownership import RUN
from boxeval.settings import Settings
from engine_runs import HEAD, forget, settings_in, write_suite

SLEEPING = """
tasks:
  - id: one
    workspace: {kind: inline, files: {a: "one\\n"}}
    runner: {kind: external-command, command: "sleep 250"}
    verify: {commands: ["true"]}
"""
pytestmark = pytest.mark.engine


@pytest.fixture
def settings(tmp_path: Path, cache: Path) -> Iterator[Settings]:
    settings = settings_in(tmp_path / "bx", cache)
    yield settings
    forget(settings)


def start(tmp_path: Path, cache: Path, before: str = "") -> Terminal:
    suite = write_suite(tmp_path, SLEEPING, HEAD.replace("30000", "300000"))
    return Terminal(
        "run",
        str(suite),
        "--out",
        str(tmp_path / "run"),
        before=before,
        BOXEVAL_HOME=str(tmp_path / "bx"),
        BOXEVAL_CACHE_DIR=str(cache),
    )


def run_id(tmp_path: Path) -> str:
    return str(json.loads((tmp_path / "run" / "plan.json").read_text())["runId"])


def ours(engine: Engine, run: str) -> list[str]:
    label = {"label": f"{RUN}={run}"}
    containers = [c["Id"] for c in engine.api.containers(all=True, filters=label)]
    return containers + [v["Name"] for v in engine.api.volumes(filters=label)["Volumes"] or ()]


def verified(tmp_path: Path, settings: Settings) -> VerifiedRun:
    return verify(tmp_path / "run", Trust.local(settings))


def wait_for_tool(engine: Engine, tmp_path: Path, terminal: Terminal) -> str:
    """Until the tool of the trial sleeps in its box."""
    terminal.read_until(b"run ")
    run = run_id(tmp_path)
    until = time.monotonic() + 60
    while not engine.api.containers(filters={"label": [f"{RUN}={run}", "boxeval.role=agent"]}):
        assert time.monotonic() < until
        time.sleep(0.05)
    return run


@pytest.mark.contract("V34", "S2")
def test_ctrl_c_seals_what_runs_and_leaves_a_sane_terminal(
    tmp_path: Path, cache: Path, engine: Engine, settings: Settings
) -> None:
    """Known failure B11. The key reaches every process of the terminal's group, which the watchdog is not in."""
    with start(tmp_path, cache) as terminal:
        run = wait_for_tool(engine, tmp_path, terminal)
        terminal.type(b"\x03")
        assert terminal.end() == 130
        assert terminal.is_sane
        assert b"INCOMPLETE" in terminal.drawn[terminal.drawn.rfind(SHOWN) :]
        assert b"Traceback" not in terminal.drawn
    assert ours(engine, run) == []
    found = verified(tmp_path, settings)
    assert (found.interrupted_by, found.closed_at is None) == ("SIGINT", False)
    assert [str(t.outcome.failure_class) for t in found.trials] == ["cancelled"]


@pytest.mark.contract("V34")
def test_a_closed_window_is_a_first_signal(
    tmp_path: Path, cache: Path, engine: Engine, settings: Settings
) -> None:
    with start(tmp_path, cache) as terminal:
        run = wait_for_tool(engine, tmp_path, terminal)
        terminal.hang_up()
        assert terminal.end() == 129
    assert ours(engine, run) == []
    assert verified(tmp_path, settings).interrupted_by == "SIGHUP"


STALLED = """
import time
from boxeval.run import controller
controller.abandon = lambda *_: time.sleep(60)
"""


@pytest.mark.contract("V34", "P18")
def test_a_third_signal_does_not_wait_for_the_engine_and_the_watchdog_removes_the_rest(
    tmp_path: Path, cache: Path, engine: Engine, settings: Settings
) -> None:
    with start(tmp_path, cache, STALLED) as terminal:
        run = wait_for_tool(engine, tmp_path, terminal)
        terminal.send(signal.SIGSTOP)  # so that all three are there before the first is looked at
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            terminal.send(number)
        began = time.monotonic()
        terminal.send(signal.SIGCONT)
        code = terminal.end(30)
        assert time.monotonic() - began < 10
        # Which of three pending signals is delivered first is the kernel's choice.
        assert code in {130, 131, 143}
        assert terminal.is_sane
    until = time.monotonic() + 30
    while ours(engine, run):
        assert time.monotonic() < until, "the watchdog left something"
        time.sleep(0.1)
    found = verified(tmp_path, settings)
    assert (found.complete, found.missing) == (False, ("one[local]#1",))
