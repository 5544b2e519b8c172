"""Steps 2 and 3: the candidate's turn, and the proof that nothing of it is alive before anything is read."""

from __future__ import annotations

from dataclasses import dataclass

from boxeval.agents.interface import ModelAccess
from boxeval.agents.registry import agent_for
from boxeval.gateway.interface import PLACEHOLDER_KEY
from boxeval.gateway.server import Route
from boxeval.sandbox.keeper import GATEWAY_PORT
from boxeval.spec.outcome import FailureClass
from boxeval.spec.trial import BoxResult, ModelTraffic, SetupFault
from boxeval.trial.boxes import box_result, run_turn, settle_box
from boxeval.trial.context import TrialContext
from boxeval.trial.stage import Staged

MODEL_NAME = "scripted"


@dataclass(frozen=True, slots=True)
class Turned:
    """What the candidate's turn left as evidence."""

    agent: BoxResult
    traffic: ModelTraffic | None
    fault: SetupFault | None = None


def take_turn(context: TrialContext, staged: Staged) -> Turned:
    """Run the candidate to its end, settle its box, close its way to the model."""
    box = staged.box
    route = _open_route(context)
    try:
        with context.steps.step("run"):
            access = _access(route) if route else None
            image_path = context.image(context.task.image).path_env
            agent = agent_for(context.task.runner.kind)
            jobs = agent.jobs(context.task, image_path, access, ambient=context.ambient)
            run_turn(box, jobs, context.task.agent_timeout_ms, context.cancel)
        with context.steps.step("settle"):
            settle_box(box)
    finally:
        traffic = _close_route(context, route)
    result = box_result(box.end, context.blobs)
    return Turned(result, traffic, _missing_directory(context, result))


def _open_route(context: TrialContext) -> Route | None:
    if context.task.script is None or context.gateway is None:
        return None
    route = context.gateway.open_route(context.task.script, MODEL_NAME)
    context.slot.keeper.request("open_gateway", port=GATEWAY_PORT)
    return route


def _access(route: Route) -> ModelAccess:
    return ModelAccess(f"http://127.0.0.1:{GATEWAY_PORT}{route.path}", PLACEHOLDER_KEY, MODEL_NAME)


def _close_route(context: TrialContext, route: Route | None) -> ModelTraffic | None:
    if route is None or context.gateway is None:
        return None
    closed = context.gateway.close_route(route.token)
    context.slot.keeper.request("close_gateway")
    log = context.blobs.put(closed.log) if closed.log else None
    return closed.traffic.model_copy(update={"log": log})


def _missing_directory(context: TrialContext, result: BoxResult) -> SetupFault | None:
    """A working directory that the fixture lacks is the suite's fault, not the candidate's."""
    if result.commands and (result.commands[0].spawn_error or "").startswith("cwd:"):
        return SetupFault(
            failure_class=FailureClass.CWD_MISSING,
            detail=f"runner.cwd {context.task.runner.cwd!r} is no directory of the workspace",
        )
    return None
