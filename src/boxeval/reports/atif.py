"""ATIF trajectories (version 1.7), one JSON line a trial: what its agent and its model said to each other.

They are made of what went over the wire, so every agent with a model has one, whatever it tells of itself. Requests
that are no part of the conversation are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from boxeval import __version__
from boxeval.gateway.endpoints import answers_at, with_path
from boxeval.gateway.interface import Heard, Said, Wire, WireError
from boxeval.gateway.sources import name_of
from boxeval.receipts.verify import VerifiedRun
from boxeval.reports.atif_answers import calls_of, parts_of, text_of
from boxeval.spec.plan import PlannedTask
from boxeval.spec.report import Report
from boxeval.spec.trial import Trial

SCHEMA = "ATIF-v1.7"
_PREFIX = "/v1"


def render(_report: Report, run: VerifiedRun) -> str:
    """A line for every sealed attempt, in the order of the ledger, ASCII only."""
    return "".join(json.dumps(trajectory(trial, run)) + "\n" for trial in run.trials)


def trajectory(trial: Trial, run: VerifiedRun) -> dict[str, Any]:
    """One trial's trajectory as JSON data."""
    task = next(t for t in run.plan.tasks if (t.task, t.target) == (trial.task, trial.target))
    seen = trial.observations
    log = run.blobs.get(seen.traffic.log) if seen.traffic and seen.traffic.log else b""
    steps = _Steps(_prompt(task), name_of(task.model))
    for wire, request, answer in _exchanges(log):
        steps.take(wire, request, answer)
    return {
        "schema_version": SCHEMA,
        "session_id": f"{trial.trial_id}.{trial.attempt}",
        "agent": {
            "name": _agent(task),
            "version": _version(trial),
            "model_name": name_of(task.model) or None,
        },
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps.made, start=1)],
        "final_metrics": _totals(trial, len(steps.made)),
        "extra": {
            "boxeval": {
                "version": __version__,
                "run": run.plan.run_id,
                "task": trial.task,
                "target": trial.target,
                "repeat": trial.repeat,
                "outcome": str(trial.outcome.task),
                "failure_class": trial.outcome.failure_class and str(trial.outcome.failure_class),
            }
        },
    }


class _Steps:
    """Grows by one answer after another. `made` has at least the prompt."""

    def __init__(self, prompt: str, model: str) -> None:
        self._model = model
        self.made: list[dict[str, Any]] = [{"source": "user", "message": prompt}]
        self._by_call: dict[str, dict[str, Any]] = {}
        """The last step that made a call of that id."""

    def take(self, wire: Wire, request: Any, answer: Any) -> None:
        """What came with a request first, then what it was answered."""
        try:
            asked = wire.read(request)
        except WireError:
            return
        if asked.model != self._model:
            return
        for said in asked.said:
            self._hear(said)
        heard = Heard()
        parts = parts_of(answer)
        for part in parts:
            wire.hear(part, heard)
        calls = calls_of(parts)
        step: dict[str, Any] = {
            "source": "agent",
            "model_name": asked.model,
            "message": text_of(parts) or heard.text,
        }
        if calls:
            step["tool_calls"] = calls
            self._by_call |= {call["tool_call_id"]: step for call in calls}
        if heard.usage:
            step["metrics"] = {
                "prompt_tokens": heard.usage.input,
                "completion_tokens": heard.usage.output,
                "cached_tokens": heard.usage.cache_read,
            }
        self.made.append(step)

    def _hear(self, said: Said) -> None:
        """The result of a call goes to the step that made it; words of the first request are the prompt."""
        if said.call_id is None:
            if len(self.made) > 1:
                self.made.append({"source": "user", "message": said.text})
            return
        if step := self._by_call.get(said.call_id):
            results = step.setdefault("observation", {"results": []})["results"]
            results.append({"source_call_id": said.call_id, "content": said.text})


def _exchanges(log: bytes) -> Iterator[tuple[Wire, Any, Any]]:
    """Requests that were answered, with the answer, as far as the log has their bodies."""
    for line in log.splitlines():
        entry = json.loads(line)
        endpoint, request = str(entry.get("path", "")).removeprefix(_PREFIX), entry.get("request")
        if entry.get("status") == 200 and isinstance(request, dict) and (wire := answers_at(endpoint)):
            yield wire, with_path(endpoint, request), entry.get("response")


def _prompt(task: PlannedTask) -> str:
    prompts = [step.runner.prompt for step in task.steps] or [task.runner.prompt]
    return next((prompt for prompt in prompts if prompt), "")


def _agent(task: PlannedTask) -> str:
    return task.runner.agent or f"boxeval.{task.runner.kind}"


def _version(trial: Trial) -> str:
    record = trial.observations.agent_record
    told = [turn.preflight.version for turn in record.turns if turn.preflight] if record else []
    return (told[0] if told else None) or __version__


def _totals(trial: Trial, steps: int) -> dict[str, Any]:
    traffic = trial.observations.traffic
    if traffic is None:
        return {"total_steps": steps}
    return {
        "total_prompt_tokens": traffic.input_tokens,
        "total_completion_tokens": traffic.output_tokens,
        "total_cost_usd": traffic.cost_usd,
        "total_steps": steps,
    }
