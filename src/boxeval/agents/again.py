"""An agent's sealed record held against the streams and session files that were kept: `boxeval verify` does it.

What boxeval itself saw of a turn, such as the probe, is in the record as well; it is no reading, and stays as it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from boxeval.agents.host import Host
from boxeval.agents.hosts import host_of
from boxeval.agents.stream import Output, Reading
from boxeval.spec.agent_record import AgentRecord, TurnEnd, TurnRecord
from boxeval.spec.box import BoxResult
from boxeval.spec.graded import FinalMessage, MessageStatus
from boxeval.spec.host_options import HostOptions
from boxeval.spec.plan import PlannedTask
from boxeval.spec.trial import Observations

Blob = Callable[[str], bytes]
"""The bytes of a blob by its digest."""
_READ = ("end", "reason", "session", "usage", "usage_reason", "calls", "calls_truncated", "context")


def record_fault(task: PlannedTask, seen: Observations, blob: Blob) -> str | None:
    """What of the record and the final message does not follow from what was kept; None if all does."""
    host, record = host_of(task.runner), seen.agent_record
    if host is None or record is None:
        return "there is a record of an agent that the task does not have" if record else None
    options = task.runner.host or HostOptions()
    boxes = [step.agent for step in seen.steps] or ([seen.agent] if seen.agent else [])
    if record.host != host.id or len(boxes) != len(record.turns):
        return "the agent's record does not have its turns"
    reading = None
    for turn, box in zip(record.turns, boxes, strict=True):
        reading = _read(host, options, box, blob)
        if fault := _turn_fault(host, turn, box, reading):
            return f"turn {turn.turn} of the agent: {fault}"
    if reading is not None and not _is_message(reading, seen.message):
        return "the final message does not follow from the agent's stream"
    return _native_fault(host, record, blob)


def _read(host: Host, options: HostOptions, box: BoxResult, blob: Blob) -> Reading | None:
    """What the stream says; None if the agent did not run."""
    if not box.commands:
        return None
    command = box.commands[-1]
    out = command.stdout
    data = blob(out.kept) if out.kept else b""
    return host.reader(options)(Output(data, out.size_bytes, command.exit_code))


def _turn_fault(host: Host, turn: TurnRecord, box: BoxResult, reading: Reading | None) -> str | None:
    if reading is None:
        is_empty = turn.end is TurnEnd.INCOMPLETE and not (turn.calls or turn.usage or turn.artifacts)
        return None if is_empty else "it did not run, and yet has a record"
    due: dict[str, Any] = {name: getattr(reading, name) for name in _READ}
    if turn.model_copy(update=due) != turn:
        return "its record does not follow from its stream"
    streams = [(one.id, one.sha256) for one in turn.artifacts]
    if streams != [(f"{host.id}.events", box.commands[-1].stdout.kept)]:
        return "its evidence is not its stream"
    return None


def _is_message(reading: Reading, message: FinalMessage | None) -> bool:
    if message is None:
        return False
    if reading.end is not TurnEnd.COMPLETED or reading.message is None:
        return message.status is not MessageStatus.COMPLETE
    data = reading.message.encode()
    return (message.status, message.sha256) == (MessageStatus.COMPLETE, hashlib.sha256(data).hexdigest())


def _native_fault(host: Host, record: AgentRecord, blob: Blob) -> str | None:
    files = record.transcripts.files if record.transcripts else ()
    if host.native is None or not files:
        return "the agent's control calls have no session file" if record.native else None
    thread = record.turns[-1].session if record.turns else None
    due = host.native({file.path: blob(file.sha256) for file in files}, thread)
    return None if record.native == due else "the agent's control calls do not follow from its session files"
