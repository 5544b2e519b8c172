"""ATIF trajectories (version 1.7), one JSON line a trial: what its agent and its model said to each other.

They are made of what went over the wire, so every agent with a model has one, whatever it tells of itself. What a model
streamed in the pieces of its own provider has its text and usage here, and its calls by id alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from boxeval import __version__
from boxeval.gateway.endpoints import WIRES
from boxeval.gateway.interface import Heard, RequestError, Said, Wire, WireError
from boxeval.gateway.json_body import read_json
from boxeval.gateway.sources import name_of
from boxeval.gateway.sse import EventReader
from boxeval.receipts.verify import VerifiedRun
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
    steps = _Steps(_prompt(task))
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

    def __init__(self, prompt: str) -> None:
        self.made: list[dict[str, Any]] = [{"source": "user", "message": prompt}]
        self._by_call: dict[str, dict[str, Any]] = {}
        """The last step that made a call of that id."""

    def take(self, wire: Wire, request: Any, answer: Any) -> None:
        """What came with a request first, then what it was answered."""
        try:
            asked = wire.read(request)
        except WireError:
            return
        for said in asked.said:
            self._hear(said)
        heard = Heard()
        calls = _calls(answer)
        for part in _parts(answer):
            wire.hear(part, heard)
        calls = calls or [_call(call, "unknown", {}) for call in sorted(heard.calls)]
        step: dict[str, Any] = {
            "source": "agent",
            "model_name": asked.model,
            "message": _text(answer) or heard.text,
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
        wire = WIRES.get(str(entry.get("path", "")).removeprefix(_PREFIX))
        if wire and entry.get("status") == 200 and isinstance(entry.get("request"), dict):
            yield wire, entry["request"], _body(entry.get("response"))


def _body(response: Any) -> Any:
    """A provider's answer is recorded as the text that came; one that is no stream is a whole body."""
    if isinstance(response, str) and response.lstrip().startswith("{"):
        try:
            return read_json(response.encode("utf-8", "surrogatepass"))
        except RequestError:
            return response
    return response


def _parts(answer: Any) -> Iterator[dict[str, Any]]:
    """A whole body, or the events of a stream that a provider sent."""
    if isinstance(answer, dict):
        yield answer
    elif isinstance(answer, str):
        for data in EventReader().feed(answer.encode("utf-8", "backslashreplace")):
            try:
                event = json.loads(data)
            except (ValueError, RecursionError):
                continue
            if isinstance(event, dict):
                yield event


def _calls(answer: Any) -> list[dict[str, Any]]:
    """The tool calls of a whole body in any of the three protocols."""
    if not isinstance(answer, dict):
        return []
    found = []
    for choice in _dicts(answer.get("choices")):
        for call in _dicts(choice["message"].get("tool_calls")) if _has_message(choice) else ():
            function = call.get("function")
            if isinstance(function, dict):
                found.append(_call(call.get("id"), function.get("name"), function.get("arguments")))
    for item in _dicts(answer.get("output")):
        if item.get("type") in ("function_call", "custom_tool_call"):
            given = item.get("arguments", item.get("input"))
            found.append(_call(item.get("call_id"), item.get("name"), given))
    for block in _dicts(answer.get("content")):
        if block.get("type") == "tool_use":
            found.append(_call(block.get("id"), block.get("name"), block.get("input")))
    return found


def _text(answer: Any) -> str:
    """The words of a whole body in any of the three protocols."""
    if not isinstance(answer, dict):
        return ""
    found = [
        choice["message"].get("content") for choice in _dicts(answer.get("choices")) if _has_message(choice)
    ]
    blocks = _dicts(answer.get("content"))
    for item in _dicts(answer.get("output")):
        blocks += _dicts(item.get("content"))
    found += [block.get("text") for block in blocks]
    return "\n".join(text for text in found if isinstance(text, str))


def _has_message(choice: dict[str, Any]) -> bool:
    return isinstance(choice.get("message"), dict)


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _call(call_id: object, name: object, given: object) -> dict[str, Any]:
    arguments = given
    if isinstance(given, str):
        try:
            # As strictly as a request: what a model writes may hold NaN, which is no JSON.
            arguments = read_json(given.encode("utf-8", "surrogatepass"))
        except RequestError:
            arguments = {"input": given}
    if not isinstance(arguments, dict):
        arguments = {"input": arguments}
    return {"tool_call_id": str(call_id), "function_name": str(name), "arguments": arguments}


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
