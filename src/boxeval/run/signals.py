"""SIGINT, SIGTERM, SIGHUP and SIGQUIT to the controller: the first ends the run in order, the second at once.

While nothing of a run is there (reading the suite, building images, printing the report) there is nothing to bring in
order, and the first signal ends the command. While boxes live, signals are noted and the controller looks at them.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

WATCHED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
NOTED = 2
"""The first ends a run in order, the second without waiting for seals; a third does not wait for the engine either."""


class Interrupted(BaseException):
    """Ends the command from wherever its main thread is. `number` is the signal that came first."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class Signals:
    """What has arrived."""

    def __init__(self) -> None:
        self.first: int | None = None
        self.count = 0
        self._draining = False

    def arrive(self, number: int, _frame: FrameType | None = None) -> None:
        """Note a signal; raise Interrupted if that is not enough."""
        self.first = self.first or number
        self.count += 1
        if not self._draining or self.count > NOTED:
            raise Interrupted(self.first)

    @contextmanager
    def draining(self) -> Iterator[None]:
        """Inside, the first two signals are noted: whoever is inside looks at them. May be nested."""
        before, self._draining = self._draining, True
        try:
            yield
        finally:
            self._draining = before


@contextmanager
def watched() -> Iterator[Signals]:
    """Take over the signals; what they did before is restored at the end.

    Outside the main thread none are seen.
    """
    signals = Signals()
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return
    before = {number: signal.signal(number, signals.arrive) for number in WATCHED}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
