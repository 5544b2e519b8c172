"""Signals while nothing of a run is there yet: the command ends, and the terminal is as it was."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from terminals import HIDDEN, Terminal

pytestmark = pytest.mark.slow

SLOW = "import time; from boxeval.run import controller; controller.connect = lambda: time.sleep(60)"


@pytest.mark.contract("V34")
@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGTERM, 143),
        *(
            pytest.param(number, code, marks=pytest.mark.slow)
            for number, code in ((signal.SIGINT, 130), (signal.SIGHUP, 129), (signal.SIGQUIT, 131))
        ),
    ],
)
def test_the_first_signal_ends_it_and_gives_the_cursor_back(number: signal.Signals, code: int) -> None:
    with Terminal("run", "quickstart", before=SLOW) as terminal:
        terminal.read_until(HIDDEN)
        terminal.read_until(b"preparing")
        terminal.send(number)
        assert terminal.end(20) == code
        assert terminal.is_sane
        assert b"Traceback" not in terminal.drawn


def test_a_closed_window_is_no_fault(tmp_path: Path) -> None:
    with Terminal("run", "quickstart", "--out", str(tmp_path / "run"), before=SLOW) as terminal:
        terminal.read_until(b"preparing")
        terminal.hang_up()
        assert terminal.end(20) == 129
    assert not (tmp_path / "run").exists()
