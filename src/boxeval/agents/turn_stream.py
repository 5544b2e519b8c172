"""The skeleton that readers of JSON lines share: bounded, strict in form, blind to what it does not know. Pure.

An agent's module says what an event means, and how its turn ended by them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from boxeval.agents.stream import (
    NO_MESSAGE,
    Calls,
    Output,
    Reading,
    StreamFault,
    events,
    exit_fault,
    faulty,
    message_of,
)
from boxeval.spec.agent_record import ClaimedUsage, TurnEnd

End = tuple[TurnEnd, str | None]
Usage = tuple[ClaimedUsage | None, str | None]


@dataclass(slots=True)
class Turn(ABC):
    """What was seen of one turn. `session` is its id, once the stream has told it."""

    session: str | None = None
    calls: Calls = field(default_factory=Calls)

    @abstractmethod
    def take(self, number: int, event: dict[str, Any]) -> None:
        """One event, with its line. Raises `StreamFault` for one that makes the stream ambiguous."""

    @abstractmethod
    def failure(self) -> str | None:
        """Why the turn failed, as the agent tells; None if it does not say so."""

    @abstractmethod
    def gap(self) -> str | None:
        """What is missing of a completed turn, if anything is."""

    @abstractmethod
    def words(self) -> object:
        """The final message, if the turn is completed."""

    @abstractmethod
    def usage(self) -> Usage:
        """Its usage, or why there is none."""


def read_turn(turn: Turn, output: Output) -> Reading:
    """Let a turn take every event of a stream, and tell what came of it."""
    try:
        for number, event in events(output):
            turn.take(number, event)
    except StreamFault as fault:
        return faulty(fault, turn.calls, turn.session)
    end, reason = _end(turn, output)
    message, message_reason = message_of(turn.words()) if end is TurnEnd.COMPLETED else NO_MESSAGE
    usage, usage_reason = turn.usage()
    return Reading(
        end,
        reason,
        message,
        message_reason,
        turn.session,
        usage,
        usage_reason,
        turn.calls.all,
        turn.calls.truncated,
    )


def _end(turn: Turn, output: Output) -> End:
    if reason := turn.failure() or exit_fault(output):
        return TurnEnd.FAILED, reason
    if gap := turn.gap():
        return TurnEnd.INCOMPLETE, gap
    return TurnEnd.COMPLETED, None
