"""A controller that kills itself at a named point of a trial.

Nothing in the product knows of this: the functions at each point are wrapped from outside, in a process that exists
for one try. What the ledger acknowledged, by returning from `append`, is written to a file first.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

POINTS = (
    "before-create",
    "created",
    "started",
    "mid-tool",
    "settled",
    "collected",
    "mid-grade",
    "before-seal",
    "mid-append",
    "after-append",
    "before-removal",
)


@dataclass(frozen=True, slots=True)
class Stop:
    """Where to die: at the `nth` time that any trial comes to `point`.

    With `alone` the watchdog is killed first, as by somebody who kills everything of ours.
    """

    point: str
    nth: int
    alone: bool
    seed: int
    acknowledged: Path


class Stopper:
    """Wraps what is at each point. Install once in a process, before the command line is called."""

    def __init__(self, stop: Stop) -> None:
        self._stop = stop
        self._chance = random.Random(stop.seed)
        self._lock = threading.Lock()
        self._seen = 0
        self._watchdog = 0
        self._role = threading.local()
        self._log = os.open(stop.acknowledged, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def at(self, point: str) -> None:
        """Die, if it is this point's turn."""
        if self.is_time(point):
            self.die()

    def is_time(self, point: str) -> bool:
        """Count the visit; True at the one that was asked for."""
        if point != self._stop.point:
            return False
        with self._lock:
            self._seen += 1
            return self._seen == self._stop.nth

    def die(self) -> None:
        """What a SIGKILL from outside does, at exactly this place."""
        if self._stop.alone and self._watchdog:
            os.kill(self._watchdog, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)

    def install(self) -> None:
        """Wrap everything."""
        from boxeval.receipts.ledger import Ledger
        from boxeval.run.watchdog import Watchdog
        from boxeval.sandbox import box
        from boxeval.sandbox.box import Box
        from boxeval.sandbox.capture import Bounded
        from boxeval.trial import sequence

        def is_agent(it: Any) -> bool:
            return bool(it.spec.labels["boxeval.role"] == "agent")

        def create(right: Callable[..., Any], engine: Any, config: Any, name: str) -> Any:
            if name.endswith("-agent"):
                self.at("before-create")
            return right(engine, config, name)

        def made(right: Callable[..., Any], it: Box, *rest: Any) -> None:
            right(it, *rest)
            if is_agent(it):
                self.at("created")

        def run(right: Callable[..., Any], it: Box, *rest: Any, **named: Any) -> Any:
            self._role.name = it.spec.labels["boxeval.role"]
            return right(it, *rest, **named)

        def feed(right: Callable[..., Any], it: Bounded, data: bytes) -> None:
            # The tool has printed and sleeps now.
            right(it, data)
            self.at("mid-tool" if getattr(self._role, "name", "") == "agent" else "mid-grade")

        def remove(right: Callable[..., Any], it: Box) -> None:
            if is_agent(it):
                self.at("before-removal")
            right(it)

        def append(right: Callable[..., Any], it: Ledger, trial: Any) -> None:
            self.at("before-seal")
            right(it, trial)
            os.write(self._log, f"{trial.trial_id}\n".encode())
            self.at("after-append")

        def pwrite(right: Callable[..., int], descriptor: int, data: bytes, offset: int) -> int:
            if offset and self.is_time("mid-append"):
                right(descriptor, data[: self._chance.randrange(1, len(data))], offset)
                self.die()
            return right(descriptor, data, offset)

        def watch(right: Callable[..., Any], it: Watchdog, order: Any) -> None:
            right(it, order)
            self._watchdog = it.pid

        def after(point: str, of_agents: bool) -> Callable[..., Any]:
            def wrapped(right: Callable[..., Any], it: Any, *rest: Any, **named: Any) -> Any:
                answer = right(it, *rest, **named)
                if not of_agents or is_agent(it):
                    self.at(point)
                return answer

            return wrapped

        for place, name, wrapper in (
            (box, "create_container", create),
            (Box, "__init__", made),
            (Box, "start", after("started", True)),
            (Box, "run", run),
            (Bounded, "feed", feed),
            (Box, "settle", after("settled", True)),
            (sequence, "collect", after("collected", False)),
            (Ledger, "append", append),
            (os, "pwrite", pwrite),
            (Box, "remove", remove),
            (Watchdog, "__init__", watch),
        ):
            _wrap(place, name, wrapper)


def _wrap(place: Any, name: str, wrapper: Callable[..., Any]) -> None:
    right = getattr(place, name)

    def wrapped(*args: Any, **named: Any) -> Any:
        return wrapper(right, *args, **named)

    setattr(place, name, wrapped)
