"""opencode: the JSON lines of `opencode run --format json`. Pure.

A turn has steps; each ends with the tokens that it took, and the last one says that it stopped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from boxeval.agents.stream import (
    Output,
    Reading,
    StreamFault,
    natural,
    word,
)
from boxeval.agents.turn_stream import Turn, Usage, read_turn
from boxeval.spec.agent_record import CallEnd, ClaimedUsage
from boxeval.spec.base import SAFE

_ENDED = {"completed": CallEnd.COMPLETED, "error": CallEnd.FAILED}


@dataclass(slots=True)
class _Turn(Turn):
    texts: list[str] = field(default_factory=list)
    """Of the step that runs."""
    finished: str | None = None
    error: str | None = None
    steps: list[object] = field(default_factory=list)

    def failure(self) -> str | None:
        return None if self.error is None else f"the turn failed: {self.error}"

    def gap(self) -> str | None:
        return None if self.finished == "stop" else "no step says that the turn stopped"

    def words(self) -> object:
        return "\n".join(self.texts)

    def usage(self) -> Usage:
        return _usage(self.steps)

    def take(self, number: int, event: dict[str, Any]) -> None:
        kind, part = event.get("type"), event.get("part")
        if "sessionID" in event:
            session = word(event["sessionID"])
            if self.session not in (None, session):
                raise StreamFault(f"line {number} is of a second session")
            self.session = session
        if kind == "error":
            error = event.get("error")
            self.error = word(error.get("name")) if isinstance(error, dict) else "unknown"
        if not isinstance(part, dict):
            return
        if kind == "step_start":
            self.texts, self.finished = [], None
        elif kind == "text" and isinstance(part.get("text"), str):
            self.texts.append(part["text"])
        elif kind == "step_finish":
            self.finished = part.get("reason") if isinstance(part.get("reason"), str) else None
            self.steps.append(part.get("tokens"))
        elif kind == "tool_use":
            state = part.get("state")
            status = state.get("status") if isinstance(state, dict) else None
            self.calls.begin(number, part.get("tool"), part.get("callID"))
            if isinstance(status, str) and status in _ENDED:
                self.calls.finish(part.get("callID"), _ENDED[status])


def read(output: Output) -> Reading:
    """One turn: one session, a last step that stopped, no error, exit 0."""
    return read_turn(_Turn(), output)


def _usage(steps: list[object]) -> tuple[ClaimedUsage | None, str | None]:
    """The sum over all steps; one that says nothing valid leaves no sum."""
    totals = dict.fromkeys(("input", "output", "read", "write"), 0)
    for number, tokens in enumerate(steps, start=1):
        if not isinstance(tokens, dict):
            return None, f"step {number} tells no usage"
        told = tokens.get("cache")
        cache: dict[str, Any] = told if isinstance(told, dict) else {}
        found = {
            "input": natural(tokens.get("input")),
            "output": natural(tokens.get("output")),
            "read": natural(cache.get("read", 0)),
            "write": natural(cache.get("write", 0)),
        }
        for name, value in found.items():
            if value is None:
                return None, f"the usage of step {number} is not valid"
            totals[name] += value
    if not steps:
        return None, "the agent tells no usage"
    whole = totals["input"] + totals["read"] + totals["write"]
    if max(whole, totals["output"]) > SAFE:
        return None, "the usage is not valid"
    return ClaimedUsage(
        input=whole, output=totals["output"], cache_read=totals["read"], cache_write=totals["write"]
    ), None
