"""Signals that ask the agent to end.

A handler that raises wherever the main thread happens to be leaves locks held and loses processes that were being
started; in a weak reference's callback its exception is dropped. So a signal is only noted, and heeded where
`check` is called, or within `interruptible` at once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
POLL_S = 0.1
"""How long a wait may last between two checks."""


class Stopped(BaseException):
    """A signal asked us to end. Not an Exception, so that no tool mistakes it for an error of its own."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


_noted = 0
_at_once = False


def listen() -> None:
    """From now on signals are noted."""
    for number in SIGNALS:
        signal.signal(number, _note)


def deafen() -> None:
    """From now on they are not: the ending itself is not interrupted."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def check() -> None:
    """Raise Stopped if there was a signal. Only the main thread ends by one; others are told to stop by it."""
    if _noted and threading.current_thread() is threading.main_thread():
        raise Stopped(_noted)


@contextmanager
def interruptible() -> Iterator[None]:
    """For a wait of the main thread that holds nothing and starts nothing: a signal ends it at once."""
    global _at_once
    try:
        _at_once = True
        check()
        yield
    finally:
        _at_once = False
    check()


def _note(number: int, _frame: object) -> None:
    global _noted, _at_once
    _noted = _noted or number
    if _at_once:
        _at_once = False
        raise Stopped(_noted)
