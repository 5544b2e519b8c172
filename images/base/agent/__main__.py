"""The reference agent: a small, complete coding agent to read, to test with, and to measure others against.

    python3 -I /opt/boxeval/agent < prompt

It takes everything else from the environment: OPENAI_BASE_URL, OPENAI_API_KEY and BOXEVAL_MODEL say where the
model is; BOXEVAL_WORKSPACE where to work (else the current directory); BOXEVAL_PERMISSIONS what is allowed
(`full` or `read-only`). The model's last message goes to stdout, the whole session to
$HOME/.boxeval/session.jsonl.

Exit codes: 0 the model ended its turn; 2 the model could not be reached or made no sense; 3 out of turns;
128 + n ended by signal n.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import BinaryIO

from chat import ChatClient, ModelError
from ledger import Ledger
from loop import MAX_TURNS, OutOfTurnsError, run
from tools import Toolbox
from workspace import Workspace


class Stopped(BaseException):
    """A signal asked us to end. Not an Exception, so that no tool mistakes it for an error of its own."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def main() -> int:
    """Run one session; returns the exit code."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _stop)
    workspace = Workspace(os.environ.get("BOXEVAL_WORKSPACE") or ".")
    permissions = os.environ.get("BOXEVAL_PERMISSIONS", "full")
    ledger = Ledger(Path.home() / ".boxeval" / "session.jsonl")
    try:
        client = ChatClient.from_environment(os.environ)
        toolbox = Toolbox(workspace, read_only=permissions != "full")
        final = run(client, toolbox, ledger, _prompt(), workspace.root)
    except ModelError as error:
        return _end(ledger, "model_error", str(error), 2)
    except OutOfTurnsError:
        return _end(ledger, "max_turns", f"no final answer after {MAX_TURNS} turns", 3)
    except Stopped as stopped:
        return _end(ledger, "signal", f"ended by signal {stopped.number}", 128 + stopped.number)
    _print(sys.stdout.buffer, final)
    ledger.add("end", reason="completed", text=final)
    return 0


def _prompt() -> str:
    return sys.stdin.buffer.read().decode("utf-8", "replace")


def _end(ledger: Ledger, reason: str, message: str, code: int) -> int:
    ledger.add("end", reason=reason, text=message)
    _print(sys.stderr.buffer, "agent: " + " ".join(message.split()))
    return code


def _print(stream: BinaryIO, text: str) -> None:
    """One line, whatever characters a model put into it."""
    stream.write(text.encode("utf-8", "backslashreplace") + b"\n")
    stream.flush()


def _stop(number: int, _frame: object) -> None:
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)  # the ending itself is not interrupted again
    raise Stopped(number)


if __name__ == "__main__":
    sys.exit(main())
