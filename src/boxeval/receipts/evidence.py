"""Which blobs a trial's observations point to."""

from __future__ import annotations

from collections.abc import Iterator

from boxeval.rules.boxes import boxes_of
from boxeval.spec.agent_record import AgentRecord
from boxeval.spec.trial import Collected, EntryKind, Observations


def referenced_blobs(seen: Observations) -> Iterator[tuple[str, str]]:
    """A name for people and the digest, for every blob that the evidence needs."""
    for exchange in seen.extension.exchanges if seen.extension else ():
        yield f"request to {exchange.method}", exchange.request
    for role, box in boxes_of(seen):
        for number, command in enumerate(box.commands, start=1):
            for stream, capture in (("stdout", command.stdout), ("stderr", command.stderr)):
                if capture.kept:
                    yield f"{role} {number} {stream}", capture.kept
    if seen.message and seen.message.sha256:
        yield "final message", seen.message.sha256
    for one in seen.judged:
        if one.document:
            yield f"judged {one.document.name}", one.document.sha256
    if seen.judge_traffic and seen.judge_traffic.log:
        yield "judge's traffic", seen.judge_traffic.log
    if seen.agent_record:
        yield from _of_agent(seen.agent_record)
    yield from _files("", seen.collected)
    for step in seen.steps:
        yield from _files(f" of step {step.id}", step.collected)
    if seen.collected and seen.collected.patch and seen.collected.patch.sha256:
        yield "patch", seen.collected.patch.sha256
    if seen.traffic and seen.traffic.log:
        yield "model traffic", seen.traffic.log
    if seen.journal and seen.journal.sha256:
        yield "session ledger", seen.journal.sha256


def _of_agent(record: AgentRecord) -> Iterator[tuple[str, str]]:
    for turn in record.turns:
        for artifact in turn.artifacts:
            if artifact.sha256:
                yield f"{artifact.id} of {turn.turn}", artifact.sha256
    trees = (record.transcripts, *record.artifacts)
    for tree in (tree for tree in trees if tree):
        for file in tree.files:
            yield f"{tree.id} {file.path}", file.sha256


def _files(whose: str, collected: Collected | None) -> Iterator[tuple[str, str]]:
    for change in collected.changes if collected else ():
        if change.kind is EntryKind.FILE and change.sha256:
            yield f"file{whose} {change.path}", change.sha256
