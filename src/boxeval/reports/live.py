"""What a run tells while it goes: a table on a terminal, plain lines elsewhere, nothing if that is wanted."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

from boxeval.reports.escape import escape
from boxeval.reports.tally import Tally
from boxeval.reports.words import duration, plural

if TYPE_CHECKING:
    from rich.console import RenderableType

    from boxeval.run.events import Watcher
    from boxeval.spec.plan import Plan, PlannedTrial
    from boxeval.spec.trial import Trial

REFRESHES_PER_S = 4


@contextmanager
def watching(stream: TextIO, *, quiet: bool) -> Iterator[Watcher]:
    """The watcher that suits a stream; after the block nothing of it is left on the terminal."""
    if quiet:
        yield Silence()
    elif stream.isatty() and not _cannot_move_cursor():
        with Table(stream) as table:
            yield table
    else:
        with Lines(stream) as lines:
            yield lines


def _cannot_move_cursor() -> bool:
    return os.environ.get("TERM", "").lower() in {"", "dumb", "unknown"}


class Silence:
    """Says nothing."""

    def note(self, text: str) -> None:
        """Ignored."""

    def planned(self, plan: Plan, directory: Path, jobs: int) -> None:
        """Ignored."""

    def started(self, trial: PlannedTrial, step: str) -> None:
        """Ignored."""

    def finished(self, trial: Trial) -> None:
        """Ignored."""


class Lines:
    """One plain line an event, for logs. A thread of its own writes, so a slow reader delays no trial."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._queue: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, name="boxeval-lines", daemon=True)
        self._lock = threading.Lock()
        self._tally = Tally()

    def __enter__(self) -> Lines:
        self._writer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._queue.put(None)
        self._writer.join(timeout=2)

    def note(self, text: str) -> None:
        """A line of what is being prepared."""
        self._queue.put(text)

    def planned(self, plan: Plan, directory: Path, jobs: int) -> None:
        """How much there is to do, and where it goes."""
        with self._lock:
            self._tally = Tally(plan)
        self._queue.put(
            f"{plan.suite.id}: {plural(len(plan.trials), 'trial')}, {jobs} at a time, in {directory}"
        )

    def started(self, trial: PlannedTrial, step: str) -> None:
        """A line when a trial first shows up, so that a log tells which one hangs."""
        with self._lock:
            new = self._tally.enter(trial, step)
        if new:
            self._queue.put(f"started {trial.key}")

    def finished(self, trial: Trial) -> None:
        """A line with the verdict, and how far the run is."""
        with self._lock:
            ended = self._tally.leave(trial)
            done, total = self._tally.done, self._tally.total
        self._queue.put(f"[{done}/{total}] {ended.key}: {ended.words}")

    def _write(self) -> None:
        while (line := self._queue.get()) is not None:
            try:
                self._stream.write(escape(line) + "\n")
                self._stream.flush()
            except (OSError, ValueError):
                return


class Window:
    """A terminal that may be closed while it is drawn on: what nobody can see is dropped."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.encoding, self.isatty, self.fileno = stream.encoding, stream.isatty, stream.fileno

    def write(self, text: str) -> int:
        """All of it is taken, whatever becomes of it."""
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """As far as there is somebody."""
        with suppress(OSError, ValueError):
            self._stream.flush()


class Table:
    """A live table on a terminal, drawn by rich a few times a second from the tally."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live

        self._lock = threading.Lock()
        self._tally = Tally()
        self._note = "preparing"
        self._console = Console(
            file=cast("TextIO", Window(stream)), highlight=False, markup=False, emoji=False
        )
        self._live = Live(
            console=self._console,
            get_renderable=self._draw,
            refresh_per_second=REFRESHES_PER_S,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Table:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def note(self, text: str) -> None:
        """Shown above the table until the next note."""
        with self._lock:
            self._note = escape(text)

    def planned(self, plan: Plan, directory: Path, jobs: int) -> None:
        """The totals stand."""
        with self._lock:
            self._tally = Tally(plan)
            self._note = escape(f"{plan.suite.id}: {jobs} at a time, in {directory}")

    def started(self, trial: PlannedTrial, step: str) -> None:
        """A trial is at this step now."""
        with self._lock:
            self._tally.enter(trial, step)

    def finished(self, trial: Trial) -> None:
        """A trial leaves the table and enters the counts."""
        with self._lock:
            self._tally.leave(trial)

    def _draw(self) -> RenderableType:
        from rich.console import Group
        from rich.table import Table as Grid
        from rich.text import Text

        now = time.monotonic()
        with self._lock:
            tally, note = self._tally, self._note
            running = [(key, step, now - since) for key, step, since in tally.running.values()]
            counts = dict(tally.counts)
            reds = list(tally.reds)
            done, total, left = tally.done, tally.total, tally.remaining_s(now)
        parts: list[RenderableType] = [Text(note, no_wrap=True, overflow="ellipsis")]
        if running:
            grid = Grid(box=None, pad_edge=False, show_edge=False)
            for heading in ("trial", "step", "elapsed"):
                grid.add_column(heading, no_wrap=True, overflow="ellipsis")
            room = max(self._console.height - len(reds) - 5, 3)
            for key, step, elapsed_s in running[:room]:
                grid.add_row(Text(escape(key)), Text(escape(step)), Text(duration(elapsed_s * 1000)))
            parts.append(grid)
            if len(running) > room:
                parts.append(Text(f"and {len(running) - room} more"))
        parts += [Text(escape(red), style="red", no_wrap=True, overflow="ellipsis") for red in reds]
        if total:
            tallied = "".join(f", {count} {kind}" for kind, count in sorted(counts.items()))
            eta = f", about {duration(left * 1000)} left" if left is not None and done < total else ""
            parts.append(Text(f"{done} of {total} done{tallied}{eta}"))
        return Group(*parts)
