"""Ending a run early: one switch that kills every live box."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from boxeval.sandbox.box import Box


class Cancel:
    """Set once, from any thread: kills every box that is live and every one that would become live."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._live: set[Box] = set()
        self._set = False

    @property
    def is_set(self) -> bool:
        """True once the run is being cancelled."""
        return self._set

    def set(self) -> None:
        """Cancel: kill what runs. Returns at once."""
        with self._lock:
            self._set = True
            live = tuple(self._live)
        # Side by side, since an engine that hangs must not keep who cancels.
        for box in live:
            threading.Thread(target=box.kill, name="boxeval-kill", daemon=True).start()

    @contextmanager
    def watching(self, box: Box) -> Iterator[None]:
        """Keep `box` on the list while it runs. Raises Cancelled instead if it is too late to begin."""
        with self._lock:
            if self._set:
                raise Cancelled
            self._live.add(box)
        try:
            yield
        finally:
            with self._lock:
                self._live.discard(box)


class Cancelled(Exception):
    """The run is being cancelled; nothing new is started."""
