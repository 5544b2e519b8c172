"""What makes two trials the same experiment: named dimensions and the digest over them (contract G69, G70).

Everything that is planned for a task is in one of the dimensions, unless it is listed here as no part of the
experiment. No run id, time, path of the host, title or credential is in any of them.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from typing import Any

import rfc8785

from boxeval.spec.plan import Plan, PlannedImage, PlannedTask

FORMAT = "boxeval.identity/2"
EVALUATOR = "boxeval.evaluator/1"
"""Changes whenever the same evidence may get another outcome."""

SKILL_HOOKS = "boxeval.host.skill-hooks"
"""What is put into a candidate's home with skills: they, and hooks that watch them being read."""

_NO_PART = {"title", "tags", "expect", "expect_class", "exclusive", "collect", "k", "identity"}
_NO_PART |= {"dry"}  # by the dimension `mode`
_OTHERWISE = {"image", "grader_image", "policy", "workspace"}
"""By what they name: an image's recipe, a policy's settings, a fixture's recipe."""
_TASK = {
    "target": "route",
    "thinking": "route",
    "model": "route",
    "judge": "route",
    "env": "configuration",
    "fixture_recipe": "fixture",
    "writes": "checks",
    "protect": "checks",
    "grader_timeout_ms": "checks",
    "required_evidence": "requiredEvidence",
    "extension_sources": "extension",
}
"""Fields of a planned task outside the dimension `case`."""
_RUNNER = {"kind": "route", "agent": "route", "permissions": "route"}
_RUNNER_RESOLVED = {"script", "env", "timeout_ms"}
_STEP_RESOLVED: Any = {"runner": _RUNNER_RESOLVED, "verify": {"timeout_ms"}}
_VERIFY = {
    "grade_incomplete": "evaluator",
    "scoring": "evaluator",
    "threshold": "evaluator",
    "extension": "extension",
}
"""Fields of `verify` outside the dimension `checks`."""
_VERIFY_RESOLVED = {"image", "timeout_ms", "evidence"}

DIMENSIONS = (
    *("runner", "project", "configuration", "extension", "case", "fixture", "checks", "requiredEvidence"),
    *("evaluator", "graders", "instrumentation", "route", "condition", "trials", "threshold"),
    *("image", "graderImage", "policy", "mode"),
)


def dimensions(plan: Plan, task: PlannedTask) -> dict[str, Any]:
    """The dimensions of a planned task by name, in the order of `DIMENSIONS`, as JSON values."""
    count = sum((trial.task, trial.target) == (task.task, task.target) for trial in plan.trials)
    return _dimensions(plan, task, count)


def identity(named: Mapping[str, Any]) -> str:
    """SHA-256 (hex) over the RFC 8785 bytes of the dimensions."""
    return _sha256({"format": FORMAT, "dimensions": dict(named)})


def digests(named: Mapping[str, Any]) -> dict[str, str]:
    """A digest for each dimension, so that two runs can be compared without showing what is in them."""
    return {name: _sha256(value) for name, value in named.items()}


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the dimensions in which two trials differ."""
    return tuple(name for name in DIMENSIONS if _sha256(one.get(name)) != _sha256(other.get(name)))


def identified(plan: Plan) -> Plan:
    """The plan with the identity of every task in its place."""
    counts = Counter((trial.task, trial.target) for trial in plan.trials)
    tasks = tuple(
        task.model_copy(
            update={"identity": identity(_dimensions(plan, task, counts[task.task, task.target]))}
        )
        for task in plan.tasks
    )
    return plan.model_copy(update={"tasks": tasks})


def _dimensions(plan: Plan, task: PlannedTask, trials: int) -> dict[str, Any]:
    made: dict[str, Any] = {
        name: {} for name in ("configuration", "extension", "case", "fixture", "checks", "evaluator", "route")
    }
    made["requiredEvidence"] = {}
    skip = _NO_PART | _OTHERWISE | {"runner", "steps", "verify"}
    _spread(made, task.model_dump(mode="json", by_alias=False, exclude=skip), _TASK, "case")
    runner = task.runner.model_dump(mode="json", by_alias=False, exclude=_RUNNER_RESOLVED)
    host = runner.pop("host") or {}
    skills = host.pop("skills", {})
    runner["host"] = {name: value for name, value in host.items() if value} or None
    _spread(made, runner, _RUNNER, "case")
    made["case"]["steps"] = [step.model_dump(mode="json", exclude=_STEP_RESOLVED) for step in task.steps]
    verify = task.verify.model_dump(mode="json", by_alias=False, exclude=_VERIFY_RESOLVED)
    _spread(made, verify, _VERIFY, "checks")
    made["evaluator"]["version"] = EVALUATOR
    made["configuration"]["hermetic"] = plan.hermetic
    run = plan.case
    if run is not None:
        made["configuration"] |= {"runtime": run.runtime, "settings": run.settings}
        made["route"]["semantic"] = (
            run.semantic.model_dump(mode="json", exclude={"model"}) if run.semantic else None
        )
    made |= {
        "runner": {"version": plan.provenance.boxeval, "build": plan.provenance.build},
        "project": run.project if run else None,
        "graders": sorted({check["grader"] for check in verify.get("checks") or ()}),
        "instrumentation": [{"id": SKILL_HOOKS, "configuration": {"skills": skills}}] if skills else [],
        "condition": run.condition if run else None,
        "trials": trials,
        "threshold": run.threshold if run else None,
        "image": _image(plan.images[task.image]),
        "graderImage": _image(plan.images[task.grader_image]),
        "policy": plan.policies[task.policy].model_dump(mode="json", exclude={"description"}),
        "mode": "dry" if run and run.dry else "executed",
    }
    return {name: made[name] for name in DIMENSIONS}


def _spread(made: dict[str, Any], values: dict[str, Any], places: Mapping[str, str], rest: str) -> None:
    for name, value in values.items():
        made[places.get(name, rest)][name] = value


def _image(image: PlannedImage) -> dict[str, str | None]:
    """An image of ours by what it is made of, since a rebuild has another digest; others by their digest."""
    if image.recipe is not None:
        return {"recipe": image.recipe, "packages": image.packages}
    return {"name": image.name, "id": image.image_id}


def _sha256(value: Any) -> str:
    return hashlib.sha256(rfc8785.dumps(value)).hexdigest()
