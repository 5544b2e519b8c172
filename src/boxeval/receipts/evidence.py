"""Which blobs a trial's observations point to."""

from __future__ import annotations

from collections.abc import Iterator

from boxeval.spec.trial import BoxResult, EntryKind, Observations


def referenced_blobs(seen: Observations) -> Iterator[tuple[str, str]]:
    """A name for people and the digest, for every blob that the evidence needs."""
    boxes: dict[str, BoxResult | None] = {"agent": seen.agent, "measure": seen.measure, "grader": seen.grader}
    for role, box in boxes.items():
        for number, command in enumerate(box.commands if box else (), start=1):
            for stream, capture in (("stdout", command.stdout), ("stderr", command.stderr)):
                if capture.kept:
                    yield f"{role} {number} {stream}", capture.kept
    for change in seen.collected.changes if seen.collected else ():
        if change.kind is EntryKind.FILE and change.sha256:
            yield f"file {change.path}", change.sha256
    if seen.collected and seen.collected.patch and seen.collected.patch.sha256:
        yield "patch", seen.collected.patch.sha256
    if seen.traffic and seen.traffic.log:
        yield "model traffic", seen.traffic.log
