"""Steps 2 and 3: a turn of the candidate, and the proof that nothing of it is alive before anything is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from boxeval.agents.hosts import host_of
from boxeval.agents.interface import ModelAccess
from boxeval.agents.registry import agent_for
from boxeval.gateway.egress import Egress
from boxeval.gateway.interface import PLACEHOLDER_KEY
from boxeval.gateway.names import Names
from boxeval.gateway.server import Route
from boxeval.gateway.sources import name_of
from boxeval.rules.allowlist import Allowlist
from boxeval.rules.chaos import schedule
from boxeval.sandbox.faults import injections
from boxeval.sandbox.keeper import GATEWAY_PORT
from boxeval.spec.agent_record import TurnRecord
from boxeval.spec.box import BoxResult
from boxeval.spec.outcome import FailureClass
from boxeval.spec.trial import SetupFault
from boxeval.trial.agent_turn import AgentTurn, Said
from boxeval.trial.boxes import box_result, run_turn, settle_box
from boxeval.trial.context import TrialContext
from boxeval.trial.stage import Staged


class ModelRoute:
    """The trial's way to its model, and to other hosts. It lasts for all turns, but is open only while one runs."""

    def __init__(self, context: TrialContext) -> None:
        self._context = context
        self._gateway, model, policy = context.gateway, context.task.model, context.slot.policy
        self._egress = Egress(Allowlist(policy.allow)) if policy.network == "allowlist" else None
        self._has_model, self._name = model is not None, name_of(model)
        self._route: Route | None = None
        if model is not None or self._egress is not None:
            host = host_of(context.task.runner)
            names = Names(self._name, host.background if host else ())
            self._route = self._gateway.open_route(model, names, policy.budget, self._egress)
            self._gateway.pause_route(self._route.token)

    @contextmanager
    def opened(self) -> Iterator[ModelAccess | None]:
        """Let the boxes of the slot reach the gateway; None if the trial has no model."""
        if self._route is None:
            yield None
            return
        self._context.slot.keeper.request("open_gateway", port=GATEWAY_PORT)
        try:
            self._gateway.resume_route(self._route.token)
            url = f"http://127.0.0.1:{GATEWAY_PORT}{self._route.path}"
            yield ModelAccess(url, PLACEHOLDER_KEY, self._name) if self._has_model else None
        finally:
            self.pause()
            self._context.slot.keeper.request("close_gateway")

    def environment(self) -> dict[str, str]:
        """What leads to the forward proxy, by all the names that programs look for; nothing without an allowlist."""
        if self._route is None or self._egress is None:
            return {}
        proxy = f"http://{self._route.token}:boxeval@127.0.0.1:{GATEWAY_PORT}"
        names = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
        local = dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost,::1")
        return {**dict.fromkeys(names, proxy), **local}

    def pause(self) -> None:
        """The turn is over, however it ended: what is asked now is not answered, and bills nobody (P17)."""
        if self._route is not None:
            self._gateway.pause_route(self._route.token)

    def close(self) -> dict[str, Any]:
        """End the route and say what went over it, as fields of the observations."""
        if self._route is None:
            return {}
        closed = self._gateway.close_route(self._route.token)
        log = self._context.blobs.put(closed.log) if closed.log else None
        traffic = closed.traffic.model_copy(update={"log": log}) if self._has_model else None
        return {"traffic": traffic, "egress": closed.egress}


def take_turn(
    context: TrialContext, staged: Staged, route: ModelRoute, before: TurnRecord | None = None
) -> tuple[BoxResult, Said | None]:
    """Run the candidate to its end, settle its box, close its way to the model.

    Returns what was seen of the box, and what an agent of others said. `before` is its last turn.
    """
    box, task, agent = staged.box, staged.turn.task, None
    with route.opened() as access:
        with context.steps.step("run"):
            scheduled = schedule(context.task, context.planned.repeat, staged.turn.step)
            faults = injections(scheduled, context.slot.policy.limits)
            if host := host_of(task.runner):
                agent = AgentTurn(context, staged.turn, host, access, before, route.environment())
                agent.prepare()
                run_turn(box, (agent.job,), task.agent_timeout_ms, context.cancel, faults, agent.probe)
            else:
                image_path = context.image(task.image).path_env
                jobs = agent_for(task.runner.kind).jobs(task, image_path, access, ambient=context.ambient)
                proxied = tuple(replace(job, env={**route.environment(), **job.env}) for job in jobs)
                run_turn(box, proxied, task.agent_timeout_ms, context.cancel, faults)
            route.pause()
        with context.steps.step("settle"):
            settle_box(box)
    result = box_result(box.end, context.blobs)
    return result, agent.said(result) if agent else None


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
