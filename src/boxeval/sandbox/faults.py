"""Faults as a box is told of them: those that its shim brings about, and those for which it only says when."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass

from boxeval.errors import BoxError, EngineError
from boxeval.rules.chaos import Scheduled
from boxeval.sandbox.engine import Engine, engine_errors
from boxeval.sandbox.shim_frames import FaultMoment
from boxeval.spec.chaos import BoxFault, Injected
from boxeval.spec.policy import Limits

TELL, FILL_MEMORY, FILL_DISK = 0, -1, -2
"""Instead of a signal's number in an S frame (images/shim/shim.c)."""
PAUSE_MS = 1000


@dataclass(frozen=True, slots=True)
class Injection:
    """One fault. `by_engine` is what the controller does when the shim says that the moment has come."""

    number: int
    delay_ms: int
    mid_tool: bool
    action: int
    to_tool: bool = False
    memory_mib: int = 0
    by_engine: BoxFault | None = None
    for_ms: int = 0

    def frame(self) -> bytes:
        """The payload of its S frame."""
        fields = (
            self.number,
            int(self.mid_tool),
            self.delay_ms,
            self.action,
            int(self.to_tool),
            self.memory_mib,
        )
        return " ".join(map(str, fields)).encode() + b"\0"


def injections(scheduled: tuple[Scheduled, ...], limits: Limits) -> tuple[Injection, ...]:
    """What a box under `limits` is to be told."""
    return tuple(_injection(one, limits) for one in scheduled)


def _injection(one: Scheduled, limits: Limits) -> Injection:
    fault = one.fault
    if fault.signal is not None:
        number = int(signal.Signals[fault.signal])
        return Injection(one.number, one.delay_ms, one.mid_tool, number, fault.target == "tool")
    if fault.fault is BoxFault.OUT_OF_MEMORY:
        memory = limits.memory_mib + limits.swap_mib
        return Injection(one.number, one.delay_ms, one.mid_tool, FILL_MEMORY, memory_mib=memory)
    if fault.fault is BoxFault.DISK_FULL:
        return Injection(one.number, one.delay_ms, one.mid_tool, FILL_DISK)
    pause_ms = fault.for_ms or PAUSE_MS
    return Injection(one.number, one.delay_ms, one.mid_tool, TELL, by_engine=fault.fault, for_ms=pause_ms)


class FaultPlan:
    """The faults of one box. `has_killed` is True once one of them has killed it."""

    def __init__(self, engine: Engine, container: str) -> None:
        self._engine, self._container = engine, container
        self.planned: dict[int, Injection] = {}
        self.has_killed = False

    def is_the_engines(self, number: int) -> bool:
        """Whether the shim waits for word of a fault, since it is the engine that brings it about."""
        return self.planned[number].by_engine is not None

    def inject(self, moment: FaultMoment) -> Injected:
        """The moment of a fault has come. The shim has brought it about, unless it is the engine's to do."""
        fault = self.planned.get(moment.number)
        if fault is None:
            raise BoxError("the shim told of a fault that is not planned")
        detail = moment.error
        try:
            if fault.by_engine is BoxFault.CONTAINER_KILL:
                with engine_errors("kill a box as planned"):
                    self._engine.api.kill(self._container, "SIGKILL")
                self.has_killed = True
            elif fault.by_engine is BoxFault.ENGINE_PAUSE:
                self._pause(fault.for_ms / 1000)
        except EngineError as error:
            detail = str(error)[:300]
        return Injected(
            number=fault.number,
            delay_ms=fault.delay_ms,
            at_ms=moment.at_ms,
            delivered=detail is None,
            detail=detail,
        )

    def _pause(self, for_s: float) -> None:
        with engine_errors("pause a box"):
            self._engine.api.pause(self._container)
            try:
                time.sleep(for_s)
            finally:
                self._engine.api.unpause(self._container)
