"""SIGINT, SIGTERM, SIGHUP and SIGQUIT to the controller: the first ends the run in order, the second at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

WATCHED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Signals:
    """What has arrived. `wake` is set at each arrival."""

    def __init__(self) -> None:
        self.first: int | None = None
        self.count = 0
        self.wake = threading.Event()

    def arrive(self, number: int, _frame: FrameType | None = None) -> None:
        """Note a signal. Nothing else happens in a handler."""
        self.first = self.first or number
        self.count += 1
        self.wake.set()


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
