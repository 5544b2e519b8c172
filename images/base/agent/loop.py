"""The loop at the heart of every agent: ask the model, do what it asks for, tell it what came of that."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from chat import ChatClient, Reply
from ledger import Ledger
from tools import Toolbox

MAX_TURNS = 12
THREADS = 8
POLL_S = 0.2

SYSTEM = """\
You are an agent that works in the directory {root}. Do what the user asks with the tools that you have.
Paths are relative to that directory. If a tool answers with an error, read it and try another way.
When the work is done, answer with a short message and no tool call."""


class OutOfTurnsError(Exception):
    """The model asked for tools in every one of its turns."""


def run(client: ChatClient, toolbox: Toolbox, ledger: Ledger, prompt: str, root: Path) -> str:
    """Go on until the model answers without a tool call, and return that answer.

    Raises ModelError, OutOfTurnsError.
    """
    system = SYSTEM.format(root=root)
    messages: list[dict[str, object]] = [
        {"role": "system", "content": system},
        {"role": "user", "content": prompt},
    ]
    ledger.add("system", text=system)
    ledger.add("user", text=prompt)
    for turn in range(1, MAX_TURNS + 1):
        reply = client.complete(messages, toolbox.schemas())
        ledger.add("assistant", turn=turn, text=reply.text, calls=[vars(call) for call in reply.calls])
        ledger.add("usage", turn=turn, **reply.usage)
        if not reply.calls:
            return reply.text or ""
        messages.append(reply.message)
        messages.extend(_do(reply, toolbox, ledger))
    raise OutOfTurnsError


def _do(reply: Reply, toolbox: Toolbox, ledger: Ledger) -> list[dict[str, object]]:
    """Run one batch of calls side by side; results come back in the order of the calls."""
    with ThreadPoolExecutor(min(len(reply.calls), THREADS)) as pool:
        try:
            running = [pool.submit(toolbox.run, call.name, call.arguments) for call in reply.calls]
            # Never without a timeout: a signal that comes just before a wait does not end it.
            while wait(running, POLL_S).not_done:
                pass
        except BaseException:
            toolbox.stop()  # or the pool would wait for commands that nobody needs any more
            raise
    messages: list[dict[str, object]] = []
    for call, future in zip(reply.calls, running, strict=True):
        result = future.result()
        ledger.add("tool", call_id=call.id, name=call.name, error=result.error, text=result.text)
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result.text})
    return messages
