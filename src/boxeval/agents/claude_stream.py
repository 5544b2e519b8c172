"""Claude Code: the JSON lines of `claude -p --output-format stream-json`. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from boxeval.agents.stream import (
    NO_USAGE,
    Output,
    Reading,
    StreamFault,
    money,
    usage_of,
    word,
)
from boxeval.agents.turn_stream import Turn, Usage, read_turn
from boxeval.spec.agent_record import CallEnd, ClaimedUsage
from boxeval.spec.base import SAFE

USAGE = {
    "input": "inputTokens",
    "output": "outputTokens",
    "cache_read": "cacheReadInputTokens",
    "cache_write": "cacheCreationInputTokens",
}
SPENT = "model_usage_since_last_result"
"""By model, and with what agents that were spawned took. The totals beside it go on from an earlier turn."""


@dataclass(slots=True)
class _Turn(Turn):
    begun: int = 0
    results: list[dict[str, Any]] = field(default_factory=list)
    """More than one if the program went on by itself, when a task of its own in the background was done."""

    def failure(self) -> str | None:
        for result in self.results:
            if result.get("subtype") != "success" or result.get("is_error"):
                return f"the turn failed: {word(result.get('subtype'))}"
        return None

    def gap(self) -> str | None:
        if self.session is None:
            return "no session was started"
        return None if self.results else "there is no result"

    def words(self) -> object:
        return self.results[-1].get("result")

    def usage(self) -> Usage:
        return _usage(self.results)

    def take(self, number: int, event: dict[str, Any]) -> None:
        kind = event.get("type")
        if kind == "system" and event.get("subtype") == "init":
            session = word(event.get("session_id"))
            if self.session not in (None, session):
                raise StreamFault(f"line {number} starts a second session")
            self.session = session
            self.begun += 1
        elif kind == "result":
            self.results.append(event)
            if len(self.results) > max(self.begun, 1):
                raise StreamFault(f"line {number} is a result of nothing that began")
            for denied in _objects(event.get("permission_denials")):
                self.calls.finish(denied.get("tool_use_id"), CallEnd.BLOCKED)
        elif kind in ("assistant", "user"):
            message = event.get("message")
            for block in _objects(message.get("content") if isinstance(message, dict) else None):
                if block.get("type") == "tool_use" and kind == "assistant":
                    self.calls.begin(number, block.get("name"), block.get("id"))
                elif block.get("type") == "tool_result" and kind == "user":
                    failed = block.get("is_error") is True
                    self.calls.finish(
                        block.get("tool_use_id"), CallEnd.FAILED if failed else CallEnd.COMPLETED
                    )


def read(output: Output) -> Reading:
    """One turn: one session, results that are all a success, exit 0. The last one has the final message."""
    return read_turn(_Turn(), output)


def _usage(results: list[dict[str, Any]]) -> tuple[ClaimedUsage | None, str | None]:
    """The sum over all results and models. Cached input is counted apart there; a record has it in the input."""
    if not results:
        return NO_USAGE
    totals, costs = dict.fromkeys(USAGE, 0), list[float | None]()
    for result in results:
        told = result.get(SPENT)
        if not isinstance(told, dict):
            return None, "the agent tells no usage"
        for spent in told.values():
            usage, reason = usage_of(spent, USAGE, spent.get("costUSD") if isinstance(spent, dict) else None)
            if usage is None:
                return None, reason
            for name in totals:
                totals[name] += getattr(usage, name) or 0
            costs.append(usage.cost_usd)
    totals["input"] += totals["cache_read"] + totals["cache_write"]
    if max(totals.values()) > SAFE:
        return None, "the usage is not valid"
    known = None if None in costs else money(sum(cost or 0.0 for cost in costs))
    return ClaimedUsage(**totals, cost_usd=known), None


def _objects(value: object) -> Iterator[dict[str, Any]]:
    """The objects of a list; of anything else none."""
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict):
            yield item
