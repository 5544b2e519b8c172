"""Progress: cheap, safe between threads, nothing left on the terminal."""

from __future__ import annotations

import io
import re
import threading
import time
from pathlib import Path

import pytest

import run_samples as samples
from boxeval.reports.live import Lines, Silence, Table, watching
from boxeval.reports.tally import Tally
from boxeval.reports.words import Kind
from boxeval.spec.plan import PlannedTrial

PLAN = samples.plan(samples.task("ok"), samples.task("bad"), repeats=20)
FAILED = samples.seen(grader=samples.box(samples.command(1)))
CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _a_terminal_that_can_move_its_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")


def test_the_stream_decides() -> None:
    with watching(io.StringIO(), quiet=True) as watcher:
        assert isinstance(watcher, Silence)
    with watching(io.StringIO(), quiet=False) as watcher:
        assert isinstance(watcher, Lines)
    with watching(Terminal(), quiet=False) as watcher:
        assert isinstance(watcher, Table)


@pytest.mark.parametrize("term", ["dumb", "unknown", ""])
def test_a_terminal_that_cannot_move_its_cursor_gets_lines(
    term: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    with watching(Terminal(), quiet=False) as watcher:
        assert isinstance(watcher, Lines)


def drive(watcher: Lines | Table | Silence) -> None:
    """Forty trials from four threads."""
    watcher.planned(PLAN, Path("/runs/run-1"), 4)

    def work(places: list[PlannedTrial]) -> None:
        for place in places:
            watcher.started(place, "stage")
            watcher.started(place, "run")
            seen = FAILED if place.task == "bad" else samples.seen()
            watcher.finished(samples.trial(PLAN.task_of(place), seen, place.repeat))

    threads = [threading.Thread(target=work, args=(list(PLAN.trials[n::4]),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_lines_from_many_threads_are_whole() -> None:
    stream = io.StringIO()
    with Lines(stream) as lines:
        drive(lines)
    said = stream.getvalue().splitlines()
    assert said[0] == "s: 40 trials, 4 at a time, in /runs/run-1"
    assert len(said) == 1 + 40 + 40
    assert sorted(line.partition(" ")[0] for line in said if line.startswith("[")) == sorted(
        f"[{n}/40]" for n in range(1, 41)
    )
    assert "\x1b" not in stream.getvalue()


def test_a_reader_that_does_not_read_delays_nobody() -> None:
    gate = threading.Event()

    class Stuck(io.StringIO):
        def write(self, text: str) -> int:
            gate.wait(10)
            return len(text)

    began = time.monotonic()
    lines = Lines(Stuck()).__enter__()
    drive(lines)
    assert time.monotonic() - began < 2
    gate.set()
    lines.__exit__()


def test_a_reader_that_went_away_raises_nothing() -> None:
    class Gone(io.StringIO):
        def write(self, _text: str) -> int:
            raise BrokenPipeError

    with Lines(Gone()) as lines:
        drive(lines)


@pytest.mark.contract("P26")
def test_the_table_shows_what_runs_and_what_is_red() -> None:
    stream = Terminal()
    with Table(stream) as table:
        drive(table)
        table.started(PLAN.trials[0], "run")
        table._live.refresh()
        shown = CODES.sub("", stream.getvalue())
    assert re.search(r"trial\s+step\s+elapsed", shown)
    assert re.search(r"ok\[base\]#1\s+run\s+\d", shown)
    assert "40 of 40 done, 20 failed, 20 passed" in shown
    assert re.search(r"bad\[base\]#\d+: failed: verifier_failed: command 1 of 1 exited 1: true", shown)


def test_the_table_draws_no_control_of_others() -> None:
    stream = Terminal()
    with Table(stream) as table:
        table.note("pulling \x1b]52;c;evil\x07[bold]image[/bold]\r")
        table._live.refresh()
    assert "\x1b]" not in stream.getvalue()
    assert "\x07" not in stream.getvalue()
    assert "pulling \\x1b]52;c;evil\\x07[bold]image[/bold]\\x0d" in CODES.sub("", stream.getvalue())


@pytest.mark.contract("S46")
def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Terminal()
    with Table(stream) as table:
        drive(table)
        table._live.refresh()
    assert not re.search(r"\x1b\[[0-9;]*m", stream.getvalue().replace("\x1b[0m", ""))


def test_the_rest_takes_as_long_as_what_is_done() -> None:
    tally = Tally(PLAN)
    assert tally.remaining_s(tally.began + 5) is None
    for place in PLAN.trials[:10]:
        tally.leave(samples.trial(PLAN.task_of(place), samples.seen(), place.repeat))
    assert tally.remaining_s(tally.began + 5) == pytest.approx(15.0)
    assert tally.counts == {Kind.PASSED: 10}
