"""The schedule of faults that follows from a seed, and what a trial's record says of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from boxeval.rules.boxes import boxes_of
from boxeval.rules.endings import exit_code
from boxeval.spec.base import Scalar
from boxeval.spec.box import BoxResult
from boxeval.spec.chaos import After, Between, BoxFault, Fault
from boxeval.spec.plan import PlannedStep, PlannedTask
from boxeval.spec.trial import Observations

NAMES = ("chaos.seed", "chaos.faultInjected", "chaos.exitCode")


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A fault with its moment: `delay_ms` after the one before, or as soon as a tool runs."""

    number: int
    fault: Fault
    delay_ms: int
    mid_tool: bool


def schedule(task: PlannedTask, repeat: int, step: PlannedStep | None = None) -> tuple[Scheduled, ...]:
    """The faults of one turn, numbered from 1 through all turns of the task.

    The same for the same seed and repeat, wherever and whenever it is computed.
    """
    before = task.steps[: task.steps.index(step)] if step else ()
    return tuple(
        Scheduled(number, fault, _delay_ms(fault, repeat, number), fault.at == "mid-tool")
        for number, fault in enumerate(
            step.faults if step else task.faults, start=1 + sum(len(one.faults) for one in before)
        )
    )


def faults_of(task: PlannedTask) -> tuple[Fault, ...]:
    """Of all turns, in the order of their numbers."""
    return (*task.faults, *(fault for step in task.steps for fault in step.faults))


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
    faults = faults_of(task)
    if not faults:
        return dict.fromkeys(NAMES)
    struck = [box for of_turn, box in _turns(task, seen) if of_turn and box]
    box = struck[-1] if struck else None
    delivered = {one.number for turn in struck for one in turn.injected if one.delivered}
    code = exit_code(box.commands[-1]) if box and box.commands and box.error is None else None
    return {
        "chaos.seed": faults[0].seed,
        "chaos.faultInjected": delivered == set(range(1, len(faults) + 1)),
        "chaos.exitCode": code,
    }


def _turns(
    task: PlannedTask, seen: Observations, repeat: int = 1
) -> Iterator[tuple[tuple[Scheduled, ...], BoxResult | None]]:
    """The schedule of each turn that may have begun, with its box."""
    yield schedule(task, repeat), seen.agent
    for step, found in zip(task.steps, seen.steps, strict=False):
        yield schedule(task, repeat, step), found.agent


def killed_from_outside(task: PlannedTask, box: BoxResult) -> bool:
    """Whether the box ended by a fault that leaves no report of its shim."""
    faults = faults_of(task)
    return any(
        one.delivered and faults[one.number - 1].fault is BoxFault.CONTAINER_KILL
        for one in box.injected
        if one.number <= len(faults)
    )


def injected_words(task: PlannedTask, box: BoxResult) -> str:
    """`injected SIGINT after 12 ms`, for people."""
    words, faults = [], faults_of(task)
    for one in box.injected:
        fault = faults[one.number - 1] if one.number <= len(faults) else None
        name = (fault.signal or fault.fault) if fault else None
        words.append(f"{name or 'a fault'} {'' if one.delivered else 'not delivered '}after {one.at_ms} ms")
    return f"injected {', '.join(words)}" if words else ""


def contradiction(task: PlannedTask, seen: Observations, repeat: int) -> str | None:
    """What in the record of faults does not follow from the schedule; None if all does."""
    turns = [(planned, box) for planned, box in _turns(task, seen, repeat) if box]
    if any(box.injected and not any(box is one for _, one in turns) for _, box in boxes_of(seen)):
        return "a fault was injected where none is planned"
    return next(filter(None, (_of_turn(planned, box) for planned, box in turns)), None)


def _of_turn(planned: tuple[Scheduled, ...], box: BoxResult) -> str | None:
    before = 0
    for place, one in enumerate(box.injected):
        if place >= len(planned) or one.number != planned[place].number:
            return "faults were injected out of order"
        if one.delay_ms != planned[place].delay_ms or one.at_ms < before + one.delay_ms:
            return f"fault {one.number} was injected at another moment than its seed says"
        before = one.at_ms
    return None
