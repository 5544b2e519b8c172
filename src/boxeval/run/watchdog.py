"""The watchdog: a process that outlives a killed controller, and removes what that left on the engine.

The controller holds the other end of the watchdog's standard input. It writes an order there, and at the end of a run
`done`; an end of the stream without it means that the controller is gone, however it went. Only then, and only once no
process has the controller's pid and start time any more, does the watchdog act. It is in a session of its own, so a
Ctrl-C or a closed terminal does not reach it, and it ignores what would end it before the controller ends.

What it cannot remove within ten minutes, and everything if it is killed too, is left to the next start or to
`boxeval clean`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from boxeval.run.signals import WATCHED

DONE = b"done\n"
DISMISS_S = 10
POLL_S = 0.05
LOOK_AGAIN_S = (0.5, 1, 2, 4, 8, 16)
"""After it found nothing more: what the engine was asked to create just before the end may come up late."""
PATIENCE_S = 600


@dataclass(frozen=True, slots=True)
class Order:
    """Whose objects to watch over: those of one run made by one controller, and a directory on the host."""

    run_id: str
    home: str
    boot: str
    controller: str
    gateway_dir: str


class Watchdog:
    """The controller's side."""

    def __init__(self, order: Order) -> None:
        """Start it. OSError if the machine has no room for another process."""
        # The same modules as here, wherever they were found.
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "boxeval.run.watchdog", order.run_id],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=environ,
            start_new_session=True,
        )
        self.pid = self._process.pid
        self._say(json.dumps(asdict(order)).encode() + b"\n")

    def dismiss(self) -> None:
        """Nothing is left: let it go. Returns once it has ended."""
        self._say(DONE)
        self.leave()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(DISMISS_S)

    def leave(self) -> None:
        """Hang up. Unless it was dismissed before, it acts once this process has ended."""
        if self._process.stdin and not self._process.stdin.closed:
            with suppress(OSError):
                self._process.stdin.close()
            # So that it is no zombie, nor a process that nobody waited for, if we live on.
            threading.Thread(target=self._process.wait, name="boxeval-watchdog", daemon=True).start()

    def _say(self, line: bytes) -> None:
        # It may have been killed; then the next start sweeps.
        with suppress(OSError, ValueError):
            if self._process.stdin:
                self._process.stdin.write(line)
                self._process.stdin.flush()


def main() -> int:
    """The watchdog's side."""
    for number in WATCHED:
        signal.signal(number, signal.SIG_IGN)
    order = sys.stdin.buffer.readline()
    if not order.endswith(b"\n") or sys.stdin.buffer.read() == DONE:
        return 0
    take_over(Order(**json.loads(order)))
    return 0


def take_over(order: Order) -> None:
    """Remove everything of the order, as soon as its controller is gone."""
    # Only now, for importing the Docker SDK takes as long as ten of these processes do to start.
    from boxeval.errors import EngineError
    from boxeval.sandbox.engine import connect
    from boxeval.sandbox.ownership import Owner, is_alive
    from boxeval.sandbox.sweep import abandon, remove_socket

    while is_alive(order.controller):
        time.sleep(POLL_S)
    remove_socket(Path(order.gateway_dir))
    owner = Owner(order.home, order.boot, order.controller)
    until = time.monotonic() + PATIENCE_S
    pauses = list(LOOK_AGAIN_S)
    while pauses and time.monotonic() < until:
        try:
            engine = connect()
            try:
                found = abandon(engine, owner, order.run_id)
            finally:
                engine.close()
        except EngineError:
            found = True
        time.sleep(LOOK_AGAIN_S[0] if found else pauses.pop(0))


if __name__ == "__main__":
    sys.exit(main())
