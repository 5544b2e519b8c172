"""The loop at the heart of every agent: ask the model, do what it asks for, tell it what came of that."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import history
from chat import ChatClient, Reply
from gate import StopGate
from inbox import Inbox
from interrupts import POLL_S, check
from ledger import Ledger
from options import Options
from tools import Toolbox

MAX_TURNS = 12
THREADS = 8

SYSTEM = """\
You are an agent that works in the directory {root}. Do what the user asks with the tools that you have.
Paths are relative to that directory. If a tool answers with an error, read it and try another way.
When the work is done, answer with a short message and no tool call."""


class OutOfTurnsError(Exception):
    """The model asked for tools in every one of its turns."""


class Conversation:
    """One session with a model. Whatever is said goes to the ledger first."""

    def __init__(
        self, client: ChatClient, toolbox: Toolbox, ledger: Ledger, inbox: Inbox, options: Options
    ) -> None:
        self._client, self._toolbox, self._ledger, self._inbox = client, toolbox, ledger, inbox
        self._limit = options.context_tokens
        self._gate = StopGate(options.stop_gate)
        self._messages: list[dict[str, Any]] = []

    def begin(self, root: Path, earlier: bool) -> None:
        """Start with the instructions, and with `earlier` go on from the last session of this home."""
        system = {"role": "system", "content": SYSTEM.format(root=root)}
        self._messages = history.restored(self._ledger.entries(), system) if earlier else [system]
        self._ledger.add("system", text=system["content"])

    def run(self, prompt: str) -> str:
        """Go on until the model answers without a tool call, and return that answer.

        Raises ModelError, OutOfTurnsError.
        """
        self._say(prompt)
        for turn in range(1, MAX_TURNS + 1):
            for text in self._inbox.take():
                self._say(text, steering=True)
            if self._limit and history.tokens(self._messages) > self._limit:
                self._compact()
            reply = self._ask(turn, self._messages, self._toolbox.schemas())
            self._messages.append(reply.message)
            if reply.calls:
                self._messages.extend(self._do(reply))
            elif objection := self._gate.objection():
                self._say(objection, gate=True)
            else:
                return reply.text or ""
        raise OutOfTurnsError

    def _say(self, text: str, **marks: bool) -> None:
        self._ledger.add("user", text=text, **marks)
        self._messages.append({"role": "user", "content": text})

    def _ask(self, turn: int, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Reply:
        reply = self._client.complete(messages, tools)
        if tools:
            self._ledger.add(
                "assistant", turn=turn, text=reply.text, calls=[vars(call) for call in reply.calls]
            )
        self._ledger.add("usage", turn=turn, **reply.usage)
        self._ledger.count(reply.usage)
        return reply

    def _compact(self) -> None:
        """Have the model sum up, and go on from that. The ledger keeps what was said before."""
        before = history.tokens(self._messages)
        asked = [*self._messages, {"role": "user", "content": history.ASK}]
        summary = self._ask(0, asked, []).text or ""
        self._messages = history.compacted(self._messages[0], summary)
        self._ledger.add("compaction", summary=summary, tokens_before=before)

    def _do(self, reply: Reply) -> list[dict[str, object]]:
        """Run one batch of calls side by side; results come back in the order of the calls."""
        with ThreadPoolExecutor(min(len(reply.calls), THREADS)) as pool:
            try:
                running = [pool.submit(self._toolbox.run, call.name, call.arguments) for call in reply.calls]
                while wait(running, POLL_S).not_done:
                    check()
            except BaseException:
                self._toolbox.stop()  # or the pool would wait for commands that nobody needs any more
                raise
        messages: list[dict[str, object]] = []
        for call, future in zip(reply.calls, running, strict=True):
            result = future.result()
            self._gate.saw(call.name, result)
            marks = {"error": result.error, "blocked": result.blocked}
            self._ledger.add("tool", call_id=call.id, name=call.name, **marks, text=result.text)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result.text})
        return messages
