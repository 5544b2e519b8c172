"""Grades texts in child processes, so that no pattern, schema or message can hang or bloat the controller."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from boxeval.spec.checks import Check
from boxeval.spec.graded import CheckStatus, CheckVerdict

START_S = 60.0
WALL_S = 90.0
"""Beside the child's own limit on processor time, for a machine that gives it none."""
POLL_S = 0.2
ANSWER_BYTES = 1024 * 1024
_ROOT = Path(__file__).parent.parent.parent
_START = (
    f"import runpy, sys; sys.path.insert(0, {str(_ROOT)!r}); "
    "runpy.run_module('boxeval.graders.child', run_name='__main__')"
)


@dataclass(frozen=True, slots=True)
class Compiled:
    """What compiling a check's configuration gave, by place in it."""

    faults: tuple[tuple[tuple[str | int, ...], str], ...] = ()
    warnings: tuple[tuple[tuple[str | int, ...], str], ...] = ()


class Examiner:
    """A pool of children. Any number of threads may ask; each question has a child for itself."""

    def __init__(self, is_cancelled: Callable[[], bool] = lambda: False) -> None:
        self._is_cancelled = is_cancelled
        self._lock = threading.Lock()
        self._idle: list[_Child] = []

    def __enter__(self) -> Examiner:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def processes(self) -> tuple[int, ...]:
        """Ids of the children that are not at work."""
        with self._lock:
            return tuple(child.pid for child in self._idle)

    def close(self) -> None:
        """End all children that are not at work."""
        with self._lock:
            idle, self._idle = self._idle, []
        for child in idle:
            child.end()

    def grade(self, check: Check, text: bytes) -> CheckVerdict:
        """The verdict of a check on a text. A child that had to be ended is status `error`."""
        answer = self._ask("grade", check, text)
        return CheckVerdict.model_validate_json(json.dumps(answer))

    def compile(self, check: Check) -> Compiled:
        """Compile the patterns and schemas of a check."""
        answer = self._ask("compile", check, b"")
        if "faults" not in answer:
            return Compiled((((), str(answer["reason"])),))
        return Compiled(
            *(tuple((tuple(path), said) for path, said in answer[key]) for key in ("faults", "warnings"))
        )

    def _ask(self, op: str, check: Check, text: bytes) -> dict[str, Any]:
        configuration = check.configuration.model_dump(mode="json", by_alias=True)
        request = {"op": op, "grader": check.grader, "configuration": configuration, "size": len(text)}
        with self._lock:
            child = self._idle.pop() if self._idle else None
        try:
            child = child or _Child()
            answer = child.ask(json.dumps(request).encode() + b"\n" + text, self._is_cancelled)
        except _Ended as ended:
            if child is not None:
                child.end()
            return {"status": CheckStatus.ERROR.value, "reason": str(ended), "limit": ended.limit}
        except BaseException:
            if child is not None:
                child.end()
            raise
        with self._lock:
            self._idle.append(child)
        return answer


class _Ended(Exception):
    """A child gave no answer."""

    def __init__(self, reason: str, limit: str | None = None) -> None:
        self.limit = limit
        super().__init__(reason)


class _Child:
    """One process. After `_Ended` it is of no more use."""

    def __init__(self) -> None:
        # Isolated, with an environment and a session of its own: a terminal's Ctrl-C is for the controller alone.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", _START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"LANG": "C.UTF-8"},
            cwd="/",
            start_new_session=True,
        )
        assert self._process.stdin and self._process.stdout
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._in, False)
        self._started = False

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def ask(self, request: bytes, is_cancelled: Callable[[], bool]) -> dict[str, Any]:
        """One request and its answer, in bounded time."""
        if not self._started:
            self._exchange(b"", START_S, is_cancelled)
            self._started = True
        answer: dict[str, Any] = json.loads(self._exchange(request, WALL_S, is_cancelled))
        return answer

    def _exchange(self, request: bytes, limit_s: float, is_cancelled: Callable[[], bool]) -> bytes:
        left, answer = memoryview(request), bytearray()
        until = time.monotonic() + limit_s
        with selectors.DefaultSelector() as ready:
            ready.register(self._out, selectors.EVENT_READ)
            if left:
                ready.register(self._in, selectors.EVENT_WRITE)
            while not answer.endswith(b"\n"):
                if is_cancelled():
                    raise _Ended("the run is being cancelled")
                if time.monotonic() > until:
                    raise _Ended(f"grading took more than {limit_s:.0f} s", "time")
                for key, _ in ready.select(POLL_S):
                    if key.fd == self._in:
                        left = self._write(left)
                        if not left:
                            ready.unregister(self._in)
                    else:
                        answer += self._read()
                if len(answer) > ANSWER_BYTES:
                    raise _Ended("the answer is too long", "output")
        return bytes(answer)

    def _write(self, left: memoryview) -> memoryview:
        try:
            return left[os.write(self._in, left[: 1 << 20]) :]
        except BlockingIOError:
            return left
        except BrokenPipeError:
            raise self._ended() from None

    def _read(self) -> bytes:
        piece = os.read(self._out, 1 << 16)
        if not piece:
            raise self._ended()
        return piece

    def _ended(self) -> _Ended:
        try:
            code = self._process.wait(POLL_S * 10)
        except subprocess.TimeoutExpired:
            return _Ended("the process that grades stopped answering")
        if -code == signal.SIGXCPU:
            return _Ended("grading used up its processor time", "time")
        how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        # V8 ends its process when it can have no more memory.
        limit = "memory" if -code in (signal.SIGABRT, signal.SIGTRAP, signal.SIGILL, signal.SIGKILL) else None
        return _Ended(f"the process that grades {how}", limit)

    def end(self) -> None:
        """Make sure that nothing of it is left."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                with contextlib.suppress(OSError):
                    pipe.close()
