"""Codex: what `codex app-server` said to the client in the image, one or more turns of one thread (G41). Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from boxeval.agents.stream import (
    Output,
    Reading,
    StreamFault,
    word,
)
from boxeval.agents.turn_stream import Turn, Usage, read_turn
from boxeval.spec.agent_record import CallEnd

TOOLS = frozenset(
    {"commandExecution", "fileChange", "mcpToolCall", "dynamicToolCall", "collabAgentToolCall", "webSearch"}
)
_ENDED = {"completed": CallEnd.COMPLETED, "failed": CallEnd.FAILED, "declined": CallEnd.BLOCKED}


@dataclass(slots=True)
class _Turn(Turn):
    message: object = None
    status: object = None

    def failure(self) -> str | None:
        return None if self.status in ("completed", None) else f"the turn ended as {word(self.status)}"

    def gap(self) -> str | None:
        is_done = self.session is not None and self.status is not None
        return None if is_done else "no turn of the root thread was completed"

    def words(self) -> object:
        return self.message

    def usage(self) -> Usage:
        return None, "the app-server's stream tells no usage of a turn"

    def take(self, number: int, event: dict[str, Any]) -> None:
        method, params = event.get("method"), event.get("params")
        if not isinstance(params, dict):
            return
        if method == "boxeval/thread":
            if self.session is not None:
                raise StreamFault(f"line {number} starts a second thread")
            self.session = word(params.get("threadId"))
            return
        if self.session is None or params.get("threadId") != self.session:
            return
        if method == "turn/started":
            self.message, self.status = None, None
        elif method == "turn/completed":
            ended = params.get("turn")
            if self.status is not None:
                raise StreamFault(f"line {number} completes a turn that had ended")
            self.status = ended.get("status") if isinstance(ended, dict) else "unknown"
        elif method in ("item/started", "item/completed") and isinstance(item := params.get("item"), dict):
            kind = item.get("type")
            if kind == "agentMessage" and method == "item/completed":
                self.message = item.get("text")
            elif isinstance(kind, str) and kind in TOOLS:
                self.calls.begin(number, kind, item.get("id"))
                status = item.get("status")
                if method == "item/completed" and isinstance(status, str):
                    self.calls.finish(item.get("id"), _ENDED.get(status, CallEnd.UNKNOWN))


def read(output: Output) -> Reading:
    """The root thread's turns: the last of them is completed, exit 0. This stream has no usage that is the turn's."""
    return read_turn(_Turn(), output)
