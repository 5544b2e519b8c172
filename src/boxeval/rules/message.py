"""The final message of a candidate that prints it, and which evidence a trial has."""

from __future__ import annotations

from boxeval.rules.agent_evidence import has_host_evidence
from boxeval.rules.turns import turns, unfinished
from boxeval.spec.graded import MESSAGE_BYTES, FinalMessage, MessageStatus
from boxeval.spec.plan import PlannedTask
from boxeval.spec.trial import Observations


def printed_message(task: PlannedTask, seen: Observations) -> FinalMessage:
    """What the last command of the last turn printed to stdout, if every turn ended well."""
    if turn := unfinished(task, seen):
        return FinalMessage(status=MessageStatus.INCOMPLETE, reason=turn.detail)
    taken = turns(task, seen)
    box = taken[-1].box if taken else None
    if box is None or not box.commands or len(taken) < max(len(task.steps), 1):
        return FinalMessage(status=MessageStatus.MISSING, reason="the candidate's turn left no report")
    out = box.commands[-1].stdout
    if not out.size_bytes:
        return FinalMessage(status=MessageStatus.MISSING, reason="the candidate printed nothing")
    if out.truncated or out.size_bytes > MESSAGE_BYTES:
        reason = f"the candidate printed {out.size_bytes} bytes, more than is kept of its output"
        return FinalMessage(status=MessageStatus.INCOMPLETE, size_bytes=out.size_bytes, reason=reason)
    return FinalMessage(status=MessageStatus.COMPLETE, size_bytes=out.size_bytes, sha256=out.kept)


KNOWN_EVIDENCE = {
    "boxeval.message": "a complete final message",
    "boxeval.changes": "the candidate's changes",
    "boxeval.patch": "a patch that has all of them",
    "boxeval.tokens": "tokens counted on the wire",
}
"""What `requiredEvidence` may name, and what that is."""


def missing_evidence(task: PlannedTask, seen: Observations) -> tuple[str, ...]:
    """The required evidence that the trial has not."""
    return tuple(name for name in task.required_evidence if not _has(name, seen))


def _has(name: str, seen: Observations) -> bool:
    collected = seen.collected
    if name == "boxeval.message":
        return seen.message is not None and seen.message.status is MessageStatus.COMPLETE
    if name == "boxeval.changes":
        return collected is not None and not (collected.limit or collected.error)
    if name == "boxeval.patch":
        return bool(collected and collected.patch and collected.patch.complete)
    if name == "boxeval.tokens":
        return seen.traffic is not None
    return has_host_evidence(name, seen)
