"""The schedule of faults that follows from a seed, and what a trial's record says of it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from boxeval.rules.endings import exit_code
from boxeval.spec.base import Scalar
from boxeval.spec.box import BoxResult
from boxeval.spec.chaos import After, Between, BoxFault, Fault
from boxeval.spec.plan import PlannedTask
from boxeval.spec.trial import Observations

NAMES = ("chaos.seed", "chaos.faultInjected", "chaos.exitCode")


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A fault with its moment: `delay_ms` after the one before, or as soon as a tool runs."""

    number: int
    fault: Fault
    delay_ms: int
    mid_tool: bool


def schedule(faults: Sequence[Fault], repeat: int) -> tuple[Scheduled, ...]:
    """The same for the same seed and repeat, wherever and whenever it is computed."""
    return tuple(
        Scheduled(number, fault, _delay_ms(fault, repeat, number), fault.at == "mid-tool")
        for number, fault in enumerate(faults, start=1)
    )


def _delay_ms(fault: Fault, repeat: int, number: int) -> int:
    if isinstance(fault.at, After):
        return fault.at.after_ms
    if not isinstance(fault.at, Between):
        return 0
    earliest, latest = fault.at.between_ms
    drawn = hashlib.sha256(f"{fault.seed}:{repeat}:{number}".encode()).digest()
    return earliest + int.from_bytes(drawn[:8], "big") % (latest - earliest + 1)


def of_chaos(task: PlannedTask, seen: Observations) -> dict[str, Scalar]:
    """The `chaos.*` metrics; all unmeasured in a task without faults."""
    if not task.faults:
        return dict.fromkeys(NAMES)
    box = seen.agent
    delivered = {one.number for one in box.injected if one.delivered} if box else set()
    code = exit_code(box.commands[-1]) if box and box.commands and box.error is None else None
    return {
        "chaos.seed": task.faults[0].seed,
        "chaos.faultInjected": delivered == set(range(1, len(task.faults) + 1)),
        "chaos.exitCode": code,
    }


def killed_from_outside(task: PlannedTask, box: BoxResult) -> bool:
    """Whether the box ended by a fault that leaves no report of its shim."""
    return any(
        one.delivered and task.faults[one.number - 1].fault is BoxFault.CONTAINER_KILL
        for one in box.injected
        if one.number <= len(task.faults)
    )


def injected_words(task: PlannedTask, box: BoxResult) -> str:
    """`injected SIGINT after 12 ms`, for people."""
    words = []
    for one in box.injected:
        fault = task.faults[one.number - 1] if one.number <= len(task.faults) else None
        name = (fault.signal or fault.fault) if fault else None
        words.append(f"{name or 'a fault'} {'' if one.delivered else 'not delivered '}after {one.at_ms} ms")
    return f"injected {', '.join(words)}" if words else ""


def contradiction(task: PlannedTask, seen: Observations, repeat: int) -> str | None:
    """What in the record of faults does not follow from the schedule; None if all does."""
    planned = schedule(task.faults, repeat)
    boxes = [seen.measure, seen.grader, *(box for step in seen.steps for box in (step.agent, step.verify))]
    if any(box and box.injected for box in boxes):
        return "a fault was injected where none is planned"
    before = 0
    for place, one in enumerate(seen.agent.injected if seen.agent else (), start=1):
        if one.number != place or place > len(planned):
            return "faults were injected out of order"
        if one.delay_ms != planned[place - 1].delay_ms or one.at_ms < before + one.delay_ms:
            return f"fault {place} was injected at another moment than its seed says"
        before = one.at_ms
    return None
