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
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import interrupts
from chat import ChatClient, ModelError
from dispatch import dispatch
from inbox import Inbox
from ledger import Ledger
from loop import MAX_TURNS, Conversation, OutOfTurnsError
from mcp import McpError, McpServer
from options import LoopOptions, Options, OptionsError
from repair import run_loop
from shell import Shell
from tools import Toolbox
from workspace import Workspace


@dataclass(frozen=True)
class End:
    """How a session ended. `text` is its answer if `code` is 0, else why there is none."""

    reason: str
    code: int
    text: str


def main() -> int:
    """Run one session; returns the exit code."""
    private = Path.home() / ".boxeval"
    try:
        options = Options.from_environment(os.environ)
    except OptionsError as error:
        _print(sys.stderr.buffer, f"agent: {error}")
        return 2
    ledger = Ledger(private / "session.jsonl", options.role, options.session, options.parent)
    interrupts.listen()
    try:
        ledger.begin(continues=options.continue_session)
        end = _work(options, ledger, Inbox(private / "inbox"))
        interrupts.check()
    except ModelError as error:
        end = End("model_error", 2, str(error))
    except McpError as error:
        end = End("mcp_error", 2, str(error))
    except OutOfTurnsError:
        end = End("max_turns", 3, f"no final answer after {MAX_TURNS} turns")
    except interrupts.Stopped as stopped:
        end = End("signal", 128 + stopped.number, f"ended by signal {stopped.number}")
    interrupts.deafen()
    if end.code == 0:
        _print(sys.stdout.buffer, end.text)
    else:
        _print(sys.stderr.buffer, "agent: " + " ".join(end.text.split()))
    ledger.seal(end.reason, end.code, end.text)
    return end.code


def _work(options: Options, ledger: Ledger, inbox: Inbox) -> End:
    """What was asked for, on the surface that was asked for."""
    workspace = Workspace(os.environ.get("BOXEVAL_WORKSPACE") or ".")
    if options.role == "main" and options.loop:
        return _looped(options.loop, ledger, workspace)
    if options.role == "main" and options.surface == "worker":
        return _dispatched(ledger)
    return End("completed", 0, _session(options, ledger, inbox, workspace))


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


def _dispatched(ledger: Ledger) -> End:
    """The second surface: one worker does it all."""
    end = dispatch(ledger, _prompt(), "worker")
    if end.exit_code:
        return End("worker_failed", end.exit_code, f"the worker ended with exit code {end.exit_code}")
    return End("completed", 0, end.text)


def _looped(options: LoopOptions, ledger: Ledger, workspace: Workspace) -> End:
    """A bounded loop of workers."""
    shell = Shell(str(workspace.root))
    try:
        reason = run_loop(options, ledger, shell, _prompt())
    finally:
        shell.stop()
    return End(reason, 0 if reason == "resolved" else 4, f"the loop ended: {reason}")


def _prompt() -> str:
    with interrupts.interruptible():
        return sys.stdin.buffer.read().decode("utf-8", "replace")


def _print(stream: BinaryIO, text: str) -> None:
    """One line, whatever characters a model put into it."""
    stream.write(text.encode("utf-8", "backslashreplace") + b"\n")
    stream.flush()


if __name__ == "__main__":
    sys.exit(main())
