"""Removes boxes, volumes and slots in the background, so that no trial waits for it; counts what would not go."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from functools import partial

from boxeval.sandbox.box import Box
from boxeval.sandbox.engine import Engine
from boxeval.sandbox.slot import Slot, remove_volume


class Reaper:
    """One thread with a queue. `drain` waits for it and says what is left."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._left: list[str] = []
        self._thread = threading.Thread(target=self._work, name="boxeval-reaper", daemon=True)
        self._thread.start()

    def take(self, box: Box | None, volumes: tuple[str, ...] = ()) -> None:
        """Remove a settled box, then the volumes that it had mounted."""
        self._queue.put(partial(self._remove, box, volumes))

    def close(self, slot: Slot) -> None:
        """Close a slot, after what was taken before."""
        self._queue.put(slot.close)

    def drain(self, hurried: Callable[[], bool] = lambda: False) -> tuple[str, ...]:
        """Finish; return one line for each object that could not be removed. Ends early once `hurried`."""
        self._queue.put(None)
        until = time.monotonic() + self._engine.waits.drain_s
        while self._thread.is_alive() and time.monotonic() < until and not hurried():
            self._thread.join(0.2)
        if self._thread.is_alive():
            self._left.append("removal was not finished; run: boxeval clean")
        return tuple(self._left)

    def _work(self) -> None:
        while (remove := self._queue.get()) is not None:
            try:
                remove()
            except Exception as error:
                # Whatever it is, the rest of the queue must still go.
                self._left.append(str(error) or repr(error))

    def _remove(self, box: Box | None, volumes: tuple[str, ...]) -> None:
        if box is not None:
            box.remove()
        for volume in volumes:
            remove_volume(self._engine, volume)
