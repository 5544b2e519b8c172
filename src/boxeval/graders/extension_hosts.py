"""What an extension is told of an agent of others: observations out of its record, and its streams as artifacts. Pure.

All of it is what the candidate's own program said; `source` is the host's id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from boxeval.spec.agent_record import AgentRecord, Completeness, SkillActivations
from boxeval.spec.base import Record
from boxeval.spec.extension import Observation

SKILLS = "boxeval.host.skill-activations"
TOLD = 1024
"""Calls, and activations, in a request, whose size is bounded."""


def host_observations(record: AgentRecord | None) -> Iterator[Observation]:
    """One for each kind of evidence that there is something of."""
    if record is None:
        return
    host = record.host
    yield _of(f"{host}.usage", host, *_usage(record))
    if native := record.native:
        told = {"calls": native.calls, "execCalls": native.exec_calls, "children": native.children}
        cut = native.truncated or any(len(items) > TOLD for items in told.values())
        data = {"truncated": cut, **{name: _plain(items) for name, items in told.items()}}
        status = Completeness.PARTIAL if cut and native.status is Completeness.COMPLETE else native.status
        yield _of(f"{host}.native-calls", host, status, data, native.reason)
        if native.boundaries:
            yield _of(f"{host}.continuation", host, native.status, {"boundaries": list(native.boundaries)})
    if record.skills:
        yield _of(SKILLS, host, *_skills(record.skills))
    invoked = [turn.invocation for turn in record.turns if turn.invocation]
    if invoked:
        whole = all(one.status is Completeness.COMPLETE for one in invoked)
        status = Completeness.COMPLETE if whole else Completeness.PARTIAL
        yield _of(f"{host}.explicit-invocation", host, status, {"skills": [one.skill for one in invoked]})


def host_streams(record: AgentRecord | None) -> Iterator[tuple[str, str, int]]:
    """Id, digest and size in bytes of the stream of each turn; turns after the first have their number in the id."""
    for number, turn in enumerate(record.turns if record else (), start=1):
        for artifact in turn.artifacts:
            if artifact.sha256 and artifact.status is Completeness.COMPLETE:
                name = artifact.id if number == 1 else f"{artifact.id}.{number}"
                yield name, artifact.sha256, artifact.size_bytes


def _usage(record: AgentRecord) -> tuple[Completeness, dict[str, Any]]:
    told = [turn.usage for turn in record.turns if turn.usage]
    if not told:
        return Completeness.UNAVAILABLE, {}
    whole = len(told) == len(record.turns)
    return Completeness.COMPLETE if whole else Completeness.PARTIAL, {"turns": _plain(told)}


def _skills(seen: SkillActivations) -> tuple[Completeness, dict[str, Any], str | None]:
    whole = seen.status is not Completeness.COMPLETE or len(seen.seen) <= TOLD
    status = seen.status if whole else Completeness.PARTIAL
    return status, {"activations": _plain(seen.seen)}, seen.reason


def _of(
    name: str, source: str, status: Completeness, data: dict[str, Any], reason: str | None = None
) -> Observation:
    if reason:
        data = {**data, "reason": reason}
    return Observation(id=name, source=source, completeness=status.value, data=data)


def _plain(items: Sequence[Record]) -> list[Any]:
    return [item.model_dump(mode="json") for item in items[:TOLD]]
