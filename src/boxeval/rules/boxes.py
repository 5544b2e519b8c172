"""All boxes of a trial, in one order and by one name for each."""

from __future__ import annotations

from boxeval.spec.box import BoxResult
from boxeval.spec.trial import Observations


def boxes_of(seen: Observations) -> tuple[tuple[str, BoxResult], ...]:
    """The boxes that ran, by role, in the order in which they ran."""
    boxes: list[tuple[str, BoxResult | None]] = [("agent", seen.agent)]
    for step in seen.steps:
        boxes += [(f"step {step.id}", step.agent), (f"check of step {step.id}", step.verify)]
    boxes += [("measure", seen.measure), ("grader", seen.grader)]
    boxes += [(f"check {check.id}", check.box) for check in seen.checks]
    boxes.append(("HEAD", seen.git_head.box if seen.git_head else None))
    exchanges = seen.extension.exchanges if seen.extension else ()
    boxes += [(f"extension {one.method}", one.box) for one in exchanges]
    return tuple((role, box) for role, box in boxes if box)
