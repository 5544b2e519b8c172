"""The second surface: an agent that does not do the work itself, but has another process of this agent do it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from interrupts import POLL_S, check
from ledger import Ledger

AGENT = str(Path(__file__).resolve().parent)
GRACE_S = 10


@dataclass(frozen=True)
class WorkerEnd:
    """How a worker ended: the name of its session, its exit code as a shell gives it, what it said."""

    session: str
    exit_code: int
    text: str


def dispatch(ledger: Ledger, prompt: str, role: str) -> WorkerEnd:
    """Run one worker to its end, in the same workspace, with a session and a receipt of its own."""
    session = ledger.next_name(role)
    ledger.add("dispatch", worker=session, prompt=prompt)
    env = {**os.environ, "BOXEVAL_ROLE": role, "BOXEVAL_SESSION": session, "BOXEVAL_PARENT": ledger.session}
    process = subprocess.Popen(
        [sys.executable, "-I", AGENT], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        out = _answer(process, prompt.encode())
    except BaseException:
        _stop(process)  # a signal to us is meant for the worker too, which then seals its own receipt
        raise
    text = out.decode("utf-8", "replace").strip()
    code = process.returncode if process.returncode >= 0 else 128 - process.returncode
    ledger.add("worker", worker=session, exit_code=code, text=text)
    return WorkerEnd(session, code, text)


def _answer(process: subprocess.Popen[bytes], prompt: bytes) -> bytes:
    given: bytes | None = prompt
    while True:
        try:
            return process.communicate(given, POLL_S)[0]
        except subprocess.TimeoutExpired:
            given = None  # it is kept, and may be given once only
            check()


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
