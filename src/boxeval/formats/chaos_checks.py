"""What pydantic cannot say about a schedule of faults."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from boxeval.formats.faults import Fault as Problem
from boxeval.formats.faults import below
from boxeval.spec.chaos import Between, BoxFault, Fault
from boxeval.spec.suite import Task


def chaos_faults(task: Task) -> Iterator[Problem]:
    """Everything wrong with `faults`."""
    if task.faults and task.steps:
        yield ("faults",), "cannot stand beside `steps`: put them into the step that they strike"
    turns = [task.faults, *(step.faults for step in task.steps)]
    seeds = [fault.seed for faults in turns for fault in faults]
    yield from below("faults", _schedule_faults(task.faults, seeds))
    for number, step in enumerate(task.steps):
        yield from below("steps", below(number, below("faults", _schedule_faults(step.faults, seeds))))


def _schedule_faults(faults: Sequence[Fault], seeds: Sequence[int]) -> Iterator[Problem]:
    for number, fault in enumerate(faults):
        yield from below(number, _fault_faults(fault))
        if fault.seed != seeds[0]:
            yield (number, "seed"), f"is not {seeds[0]}: a schedule has one seed"


def _fault_faults(fault: Fault) -> Iterator[Problem]:
    if (fault.signal is None) == (fault.fault is None):
        yield (), "needs exactly one of `signal` and `fault`"
    elif fault.signal and fault.target == "box":
        yield ("target",), "`box` cannot get a signal; name `agent` or `tool`"
    elif fault.fault and fault.target != "box":
        yield ("target",), f"`{fault.fault}` strikes the `box`"
    if fault.target == "tool" and fault.at == "start":
        yield ("at",), "no tool runs at the start; name a later moment"
    if fault.for_ms is not None and fault.fault is not BoxFault.ENGINE_PAUSE:
        yield ("forMs",), f"needs `fault: {BoxFault.ENGINE_PAUSE}`"
    if isinstance(fault.at, Between) and fault.at.between_ms[0] > fault.at.between_ms[1]:
        yield ("at", "betweenMs"), "its first moment is later than its last"
