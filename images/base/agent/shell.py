"""Running a command: bounded in time and output, with every process of its group gone afterwards."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from typing import IO

from interrupts import POLL_S, check

CHUNK = 65_536
DRAIN_S = 1.0


@dataclass(frozen=True)
class Ended:
    """How a command ended. `output` is stdout and stderr as they came, the middle cut out if it was long."""

    exit_code: int
    output: str
    timed_out: bool


class Shell:
    """Runs commands for several threads and can end all of them at once."""

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd
        self._running: set[int] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def run(self, command: str, timeout_s: float, keep_bytes: int) -> Ended:
        """Run a bash command. What it left in the background ends with it. Raises OSError."""
        with self._lock:
            if self._stopped:
                raise OSError("the session is over")
            process = subprocess.Popen(
                ["bash", "-c", command],
                cwd=self._cwd,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._running.add(process.pid)
        assert process.stdout is not None
        kept = _Kept(keep_bytes)
        reader = threading.Thread(target=_read, args=(process.stdout, kept), daemon=True)
        reader.start()
        try:
            timed_out = not _ends(process, timeout_s)
        finally:
            _kill(process.pid)
            process.wait()
            with self._lock:
                self._running.discard(process.pid)
        reader.join(DRAIN_S)  # a process that left the group may hold the pipe; it is not waited for
        return Ended(process.returncode, kept.text(), timed_out)

    def stop(self) -> None:
        """Kill every running command, and start no more."""
        with self._lock:
            self._stopped = True
            for group in self._running:
                _kill(group)


def _ends(process: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """Whether it ends in time. Raises Stopped."""
    until = time.monotonic() + timeout_s
    while True:
        try:
            process.wait(min(POLL_S, max(0.0, until - time.monotonic())))
            return True
        except subprocess.TimeoutExpired:
            check()
            if time.monotonic() >= until:
                return False


class _Kept:
    """The first and the last half of what was read."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._cut = 0
        self._lock = threading.Lock()

    def add(self, data: bytes) -> None:
        with self._lock:
            room = self._half - len(self._head)
            self._head += data[:room]
            self._tail += data[room:]
            over = len(self._tail) - self._half
            if over > 0:
                del self._tail[:over]
                self._cut += over

    def text(self) -> str:
        with self._lock:
            head, tail = (bytes(part).decode("utf-8", "replace") for part in (self._head, self._tail))
            return head + (f"\n[{self._cut} bytes left out]\n" if self._cut else "") + tail


def _read(stream: IO[bytes], kept: _Kept) -> None:
    with stream:
        while data := os.read(stream.fileno(), CHUNK):
            kept.add(data)


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
