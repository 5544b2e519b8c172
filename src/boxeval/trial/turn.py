"""Steps 2 and 3: a turn of the candidate, and the proof that nothing of it is alive before anything is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from boxeval.agents.interface import ModelAccess
from boxeval.agents.registry import agent_for
from boxeval.gateway.interface import PLACEHOLDER_KEY
from boxeval.gateway.names import Names
from boxeval.gateway.server import Route
from boxeval.gateway.sources import name_of
from boxeval.rules.chaos import schedule
from boxeval.sandbox.faults import injections
from boxeval.sandbox.keeper import GATEWAY_PORT
from boxeval.spec.box import BoxResult
from boxeval.spec.outcome import FailureClass
from boxeval.spec.trial import ModelTraffic, SetupFault
from boxeval.trial.boxes import box_result, run_turn, settle_box
from boxeval.trial.context import TrialContext
from boxeval.trial.stage import Staged


class ModelRoute:
    """The trial's way to its model. It lasts for all turns, but is open only while one of them runs."""

    def __init__(self, context: TrialContext) -> None:
        self._context = context
        self._gateway = context.gateway
        self._route: Route | None = None
        self._name = ""
        if (model := context.task.model) is not None:
            self._name = name_of(model)
            self._route = self._gateway.open_route(model, Names(self._name), context.slot.policy.budget)
            self._gateway.pause_route(self._route.token)

    @contextmanager
    def opened(self) -> Iterator[ModelAccess | None]:
        """Let the boxes of the slot reach the model; None if the trial has none."""
        if self._route is None:
            yield None
            return
        self._context.slot.keeper.request("open_gateway", port=GATEWAY_PORT)
        try:
            self._gateway.resume_route(self._route.token)
            url = f"http://127.0.0.1:{GATEWAY_PORT}{self._route.path}"
            yield ModelAccess(url, PLACEHOLDER_KEY, self._name)
        finally:
            self.pause()
            self._context.slot.keeper.request("close_gateway")

    def pause(self) -> None:
        """The turn is over, however it ended: what is asked now is not answered, and bills nobody (P17)."""
        if self._route is not None:
            self._gateway.pause_route(self._route.token)

    def close(self) -> ModelTraffic | None:
        """End the route and say what went over it."""
        if self._route is None:
            return None
        closed = self._gateway.close_route(self._route.token)
        log = self._context.blobs.put(closed.log) if closed.log else None
        return closed.traffic.model_copy(update={"log": log})


def take_turn(context: TrialContext, staged: Staged, route: ModelRoute) -> BoxResult:
    """Run the candidate to its end, settle its box, close its way to the model."""
    box, task = staged.box, staged.turn.task
    with route.opened() as access:
        with context.steps.step("run"):
            image_path = context.image(task.image).path_env
            jobs = agent_for(task.runner.kind).jobs(task, image_path, access, ambient=context.ambient)
            scheduled = schedule(task.faults, context.planned.repeat)
            faults = injections(scheduled, context.slot.policy.limits)
            run_turn(box, jobs, task.agent_timeout_ms, context.cancel, faults)
            route.pause()
        with context.steps.step("settle"):
            settle_box(box)
    return box_result(box.end, context.blobs)


def missing_directory(staged: Staged, result: BoxResult) -> SetupFault | None:
    """A working directory that the fixture lacks is the suite's fault, not the candidate's."""
    if not staged.turn.is_first or not result.commands:
        return None
    if not (result.commands[0].spawn_error or "").startswith("cwd:"):
        return None
    return SetupFault(
        failure_class=FailureClass.CWD_MISSING,
        detail=f"runner.cwd {staged.turn.task.runner.cwd!r} is no directory of the workspace",
    )
