"""Hostile streams of agents: bounded JSON lines, and the small parts that every reader takes out of them. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from boxeval.spec.agent_record import CALLS, CallEnd, ClaimedCall, ClaimedUsage, ContextIndex, TurnEnd
from boxeval.spec.base import SAFE

STREAM_BYTES = 8 * 1024 * 1024
MESSAGE_BYTES = 8 * 1024 * 1024
WORD = 256
_DIGITS = 20
"""More than any number that means something here, and few enough to be read at once."""


NO_MESSAGE: tuple[str | None, str | None] = (None, "the turn was not completed")
NO_USAGE: tuple[ClaimedUsage | None, str | None] = (None, "the turn was not completed")


class StreamFault(Exception):
    """The stream is malformed, ambiguous or oversized; the text says which, on one line."""


@dataclass(frozen=True, slots=True)
class Output:
    """What one command of an agent left. `stdout` is whole unless `size_bytes` says more.

    `exit_code` None: it was ended.
    """

    stdout: bytes
    size_bytes: int
    exit_code: int | None


@dataclass(frozen=True, slots=True)
class Reading:
    """One turn as its agent tells it. `message` is the final text; None, with `message_reason`, if there is none."""

    end: TurnEnd
    reason: str | None = None
    message: str | None = None
    message_reason: str | None = None
    session: str | None = None
    usage: ClaimedUsage | None = None
    usage_reason: str | None = None
    calls: tuple[ClaimedCall, ...] = ()
    calls_truncated: bool = False
    context: ContextIndex | None = None


@dataclass(slots=True)
class Calls:
    """Collects tool calls by their ids, each once, up to a cap."""

    found: dict[str, ClaimedCall] = field(default_factory=dict)
    truncated: bool = False

    def begin(self, ordinal: int, name: object, call_id: object) -> None:
        """A call was made. A second one with the same id is the same call."""
        key = call_id if isinstance(call_id, str) and call_id else f"\0{ordinal}"
        if key in self.found:
            return
        if len(self.found) >= CALLS:
            self.truncated = True
            return
        told = word(call_id) if isinstance(call_id, str) and call_id else None
        self.found[key] = ClaimedCall(ordinal=ordinal, name=word(name), id=told, end=CallEnd.UNKNOWN)

    def finish(self, call_id: object, end: CallEnd) -> None:
        """What became of a call. The first word on it counts; of a call that was not made nothing is kept."""
        call = self.found.get(call_id) if isinstance(call_id, str) else None
        if call is not None and call.end is CallEnd.UNKNOWN:
            self.found[str(call_id)] = call.model_copy(update={"end": end})

    @property
    def all(self) -> tuple[ClaimedCall, ...]:
        """The calls in the order in which they began."""
        return tuple(self.found.values())


def events(output: Output) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every object of a stream of JSON lines with its line's number from 1. Blank lines are passed over.

    Raises StreamFault for a stream that is too large, is not UTF-8, or has a line that is no JSON object.
    """
    for number, line in enumerate(text_of(output).split("\n"), start=1):
        if line.strip():
            value = parse(line, f"line {number}")
            if not isinstance(value, dict):
                raise StreamFault(f"line {number} is not a JSON object")
            yield number, value


def text_of(output: Output) -> str:
    """The whole stream as text. Raises StreamFault if it is too large or no UTF-8."""
    if output.size_bytes > STREAM_BYTES or len(output.stdout) < output.size_bytes:
        raise StreamFault(f"the stream has {output.size_bytes} bytes; {STREAM_BYTES} are read at most")
    try:
        return output.stdout.decode("utf-8")
    except UnicodeDecodeError as error:
        raise StreamFault(f"the stream is not UTF-8 at byte {error.start}") from None


def parse(text: str, what: str) -> Any:
    """JSON of a candidate. A number that nobody can mean becomes infinite; NaN is none."""
    try:
        return json.loads(text, parse_int=_integer, parse_constant=_no_constant)
    except RecursionError:
        raise StreamFault(f"{what} is nested too deeply") from None
    except ValueError:
        raise StreamFault(f"{what} is not JSON") from None


def natural(value: object) -> int | None:
    """A whole number that canonical JSON can carry; None for anything else, a boolean too."""
    return value if type(value) is int and 0 <= value <= SAFE else None


def usage_of(
    source: object, names: Mapping[str, str], cost: object = None
) -> tuple[ClaimedUsage | None, str | None]:
    """Usage by the agent's own names, or why there is none. What it leaves out is not guessed at."""
    if not isinstance(source, dict):
        return None, "the agent tells no usage"
    counts = {field_name: natural(source.get(name)) for field_name, name in names.items()}
    for field_name in ("input", "output"):
        if counts.get(field_name) is None:
            return None, f"the usage has no valid `{names[field_name]}`"
    for field_name, name in names.items():
        if counts[field_name] is None and source.get(name) is not None:
            return None, f"the usage has no valid `{name}`"
    return ClaimedUsage(**counts, cost_usd=money(cost)), None  # type: ignore[arg-type]  # input and output are numbers


def money(value: object) -> float | None:
    """An amount of dollars that canonical JSON can carry, or None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value <= SAFE else None


def word(value: object) -> str:
    """A name for a record: text of at most 256 characters, escaped where it is not printable."""
    text = value if isinstance(value, str) else repr(type(value).__name__)
    shown = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text[:WORD])
    return shown[:WORD]


def message_of(text: object) -> tuple[str | None, str | None]:
    """A final message, or why there is none."""
    if not isinstance(text, str) or not text.strip():
        return None, "the agent ended without a final message"
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        return None, "the final message is no valid Unicode"
    if size > MESSAGE_BYTES:
        return None, f"the final message has {size} bytes; {MESSAGE_BYTES} are kept at most"
    return text, None


def faulty(fault: StreamFault, calls: Calls, session: str | None = None) -> Reading:
    """The reading of a stream that cannot be trusted: nothing in it counts as complete."""
    reason = str(fault)
    return Reading(
        TurnEnd.ERROR,
        reason,
        message_reason=f"the stream is not usable: {reason}",
        session=session,
        usage_reason=f"the stream is not usable: {reason}",
        calls=calls.all,
        calls_truncated=calls.truncated,
    )


def reading_of(read: Callable[[Output], Reading], output: Output) -> Reading:
    """What a reader makes of a stream. One that it breaks off at is a bad stream: void, a candidate could choose it."""
    try:
        return read(output)
    except Exception as error:
        return faulty(StreamFault(f"its reader broke off: {type(error).__name__}"), Calls())


def exit_fault(output: Output) -> str | None:
    """Why the command did not end as a completed turn does; None if it exited 0."""
    if output.exit_code == 0:
        return None
    return "the agent was ended" if output.exit_code is None else f"the agent exited {output.exit_code}"


def _integer(text: str) -> int | float:
    return int(text) if len(text) <= _DIGITS else math.inf


def _no_constant(text: str) -> None:
    raise ValueError(text)
