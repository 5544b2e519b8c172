"""The reference agent: a small, complete coding agent to read, to test with, and to measure others against.

    python3 -I /opt/boxeval/agent < prompt

It takes everything else from the environment: OPENAI_BASE_URL, OPENAI_API_KEY and BOXEVAL_MODEL say where the
model is; BOXEVAL_WORKSPACE where to work (else the current directory); BOXEVAL_PERMISSIONS what is allowed
(`full` or `read-only`); BOXEVAL_OPTIONS the rest (docs/reference-agent.md). The model's last message goes to
stdout, the whole session to $HOME/.boxeval/session.jsonl.

Exit codes: 0 the model ended its turn, or the loop was resolved; 2 the model could not be reached or made no sense;
3 out of turns; 4 a bounded loop ended without success; 128 + n ended by signal n. A dispatcher ends as its worker does.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import BinaryIO

from chat import ChatClient, ModelError
from dispatch import dispatch
from inbox import Inbox
from ledger import Ledger
from loop import MAX_TURNS, Conversation, OutOfTurnsError
from mcp import McpError, McpServer
from options import Options, OptionsError
from repair import run_loop
from shell import Shell
from tools import Toolbox
from workspace import Workspace

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Stopped(BaseException):
    """A signal asked us to end. Not an Exception, so that no tool mistakes it for an error of its own."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def main() -> int:
    """Run one session; returns the exit code."""
    private = Path.home() / ".boxeval"
    try:
        options = Options.from_environment(os.environ)
    except OptionsError as error:
        _print(sys.stderr.buffer, f"agent: {error}")
        return 2
    ledger = Ledger(private / "session.jsonl", options.role, options.session, options.parent)
    workspace = Workspace(os.environ.get("BOXEVAL_WORKSPACE") or ".")
    for number in SIGNALS:
        signal.signal(number, _stop)
    try:
        ledger.begin(continues=options.continue_session)
        if options.role == "main" and options.loop:
            return _looped(options, ledger, workspace)
        if options.role == "main" and options.surface == "worker":
            return _dispatched(ledger)
        final = _session(options, ledger, Inbox(private / "inbox"), workspace)
    except ModelError as error:
        return _end(ledger, "model_error", str(error), 2)
    except McpError as error:
        return _end(ledger, "mcp_error", str(error), 2)
    except OutOfTurnsError:
        return _end(ledger, "max_turns", f"no final answer after {MAX_TURNS} turns", 3)
    except Stopped as stopped:
        return _end(ledger, "signal", f"ended by signal {stopped.number}", 128 + stopped.number)
    _print(sys.stdout.buffer, final)
    ledger.seal("completed", 0, final)
    return 0


def _session(options: Options, ledger: Ledger, inbox: Inbox, workspace: Workspace) -> str:
    """The plain surface: one conversation."""
    client = ChatClient.from_environment(os.environ)
    servers: list[McpServer] = []
    try:
        for name, command in options.mcp.items():
            servers.append(McpServer(name, command, str(workspace.root)))
        toolbox = Toolbox(workspace, options.permissions != "full", servers)
        talk = Conversation(client, toolbox, ledger, inbox, options)
        talk.begin(workspace.root, options.continue_session)
        return talk.run(_prompt())
    finally:
        for server in servers:
            server.stop()


def _dispatched(ledger: Ledger) -> int:
    """The second surface: one worker does it all."""
    end = dispatch(ledger, _prompt(), "worker")
    _print(sys.stdout.buffer, end.text)
    ledger.seal("completed" if end.exit_code == 0 else "worker_failed", end.exit_code, end.text)
    return end.exit_code


def _looped(options: Options, ledger: Ledger, workspace: Workspace) -> int:
    """A bounded loop of workers."""
    assert options.loop is not None
    shell = Shell(str(workspace.root))
    try:
        reason = run_loop(options.loop, ledger, shell, _prompt())
    finally:
        shell.stop()
    if reason != "resolved":
        return _end(ledger, reason, f"the loop ended: {reason}", 4)
    _print(sys.stdout.buffer, reason)
    ledger.seal(reason, 0, reason)
    return 0


def _prompt() -> str:
    return sys.stdin.buffer.read().decode("utf-8", "replace")


def _end(ledger: Ledger, reason: str, message: str, code: int) -> int:
    ledger.seal(reason, code, message)
    _print(sys.stderr.buffer, "agent: " + " ".join(message.split()))
    return code


def _print(stream: BinaryIO, text: str) -> None:
    """One line, whatever characters a model put into it."""
    stream.write(text.encode("utf-8", "backslashreplace") + b"\n")
    stream.flush()


def _stop(number: int, _frame: object) -> None:
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)  # the ending itself is not interrupted again
    raise Stopped(number)


if __name__ == "__main__":
    sys.exit(main())
