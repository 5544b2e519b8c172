"""Signals: what the first, the second and the third do, while boxes live and while none do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from boxeval.run.signals import WATCHED, Interrupted, Signals, watched


@pytest.mark.contract("V34")
def test_while_boxes_live_two_are_noted_and_a_third_ends_it() -> None:
    signals = Signals()
    with signals.draining():
        signals.arrive(signal.SIGTERM)
        signals.arrive(signal.SIGINT)
        assert (signals.first, signals.count) == (signal.SIGTERM, 2)
        with pytest.raises(Interrupted) as caught:
            signals.arrive(signal.SIGINT)
    assert caught.value.number == signal.SIGTERM


@pytest.mark.parametrize("number", WATCHED)
def test_where_nothing_is_to_be_brought_in_order_the_first_ends_it(number: int) -> None:
    before = signal.getsignal(number)
    with watched() as signals, pytest.raises(Interrupted) as caught:
        os.kill(os.getpid(), number)
        signal.pause()
    assert (caught.value.number, signals.first) == (number, number)
    assert signal.getsignal(number) == before


def test_outside_the_main_thread_nothing_is_taken_over() -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen = []

    def work() -> None:
        with watched():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_command_that_a_signal_ends_waits_for_no_thread(number: int, code: int) -> None:
    """A thread that waits for the engine must not keep the process."""
    script = f"""
import os, sys, time
from concurrent.futures import ThreadPoolExecutor
from boxeval import __main__
from boxeval.cli import app
from boxeval.run.signals import watched
def hang(**_):
    ThreadPoolExecutor().submit(time.sleep, 60)
    with watched():
        os.kill(os.getpid(), {int(number)})
        time.sleep(30)
app.typer.main.get_command = lambda _: type("Command", (), {{"main": staticmethod(hang)}})
sys.argv = ["boxeval", "run", "x"]
sys.exit(__main__.main())
"""
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=25, check=False)
    assert (process.returncode, process.stderr) == (code, b"")
