"""boxeval on a pseudo-terminal of its own, as in a window that a person looks at."""

from __future__ import annotations

import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from fcntl import ioctl
from types import TracebackType

LEADER = """
import fcntl, os, runpy, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
exec(sys.argv.pop(1))
sys.argv[0] = "boxeval"
runpy.run_module("boxeval", run_name="__main__", alter_sys=True)
"""
HIDDEN, SHOWN = b"\x1b[?25l", b"\x1b[?25h"


class Terminal:
    """A boxeval that leads the session of a terminal; `before` is Python that it runs first."""

    def __init__(self, *arguments: str, before: str = "", **environ: str) -> None:
        self.master, self.slave = pty.openpty()
        ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.attributes = termios.tcgetattr(self.slave)
        self.drawn = b""
        self.process = subprocess.Popen(
            [sys.executable, "-c", LEADER, before, *arguments],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            env={**os.environ, "TERM": "xterm", **environ},
            start_new_session=True,
        )

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for descriptor in (self.master, self.slave):
            if descriptor >= 0:
                os.close(descriptor)

    def read_until(self, text: bytes, timeout_s: float = 60) -> None:
        """Take what is drawn until `text` is in it."""
        until = time.monotonic() + timeout_s
        while text not in self.drawn:
            assert time.monotonic() < until, self.drawn[-2000:]
            self._take(0.1)

    def type(self, keys: bytes) -> None:
        """Keys that a person presses; Ctrl-C is b'\\x03'."""
        os.write(self.master, keys)

    def hang_up(self) -> None:
        """Close the window."""
        os.close(self.slave)
        os.close(self.master)
        self.master = self.slave = -1

    def end(self, timeout_s: float = 60) -> int:
        """Wait for the end, taking what is drawn; return the exit code."""
        until = time.monotonic() + timeout_s
        while self.process.poll() is None:
            assert time.monotonic() < until, self.drawn[-2000:]
            if self.master >= 0:
                self._take(0.1)
            else:
                time.sleep(0.1)
        if self.master >= 0:
            self._take(0)
        return self.process.returncode

    def send(self, number: signal.Signals) -> None:
        """A signal to boxeval alone."""
        self.process.send_signal(number)

    @property
    def is_sane(self) -> bool:
        """The cursor is visible and the line discipline is what it was."""
        hidden, shown = self.drawn.rfind(HIDDEN), self.drawn.rfind(SHOWN)
        return shown >= hidden and termios.tcgetattr(self.slave) == self.attributes

    def _take(self, wait_s: float) -> None:
        while select.select([self.master], [], [], wait_s)[0]:
            try:
                piece = os.read(self.master, 65536)
            except OSError:
                return
            self.drawn += piece
            wait_s = 0
