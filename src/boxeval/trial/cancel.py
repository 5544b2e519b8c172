"""Ending a run early: one switch that kills every live box and every question to a judge."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Live(Protocol):
    """Something that runs and can be ended at once, from any thread."""

    def kill(self) -> None:
        """End it."""


class Cancel:
    """Set once, from any thread: kills everything that is live and every one that would become live."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._live: set[Live] = set()
        self._set = False

    @property
    def is_set(self) -> bool:
        """True once the run is being cancelled."""
        return self._set

    def set(self) -> None:
        """Cancel: kill what runs. Returns at once."""
        with self._lock:
            self._set = True
            running = tuple(self._live)
        # Side by side, since an engine that hangs must not keep who cancels.
        for live in running:
            threading.Thread(target=live.kill, name="boxeval-kill", daemon=True).start()

    @contextmanager
    def watching(self, live: Live) -> Iterator[None]:
        """Keep `live` on the list while it runs. Raises Cancelled instead if it is too late to begin."""
        with self._lock:
            if self._set:
                raise Cancelled
            self._live.add(live)
        try:
            yield
        finally:
            with self._lock:
                self._live.discard(live)


class Cancelled(Exception):
    """The run is being cancelled; nothing new is started."""
