"""Makers of suites and plans for tests of what is decided before anything runs."""

from __future__ import annotations

from typing import Any

from boxeval.rules.planning import PlanInputs, make_plan
from boxeval.spec.models import Script
from boxeval.spec.plan import Plan, PlannedImage, PlannedTask
from boxeval.spec.policy import Limits, Policy
from boxeval.spec.suite import Suite
from run_samples import PROVENANCE

IMAGES = ("boxeval/base", "boxeval/grader", "task", "target", "defaults", "verify")
POLICIES = {
    "default": Policy(version=1, id="default", hermetic=False),
    "strict": Policy(version=1, id="strict", limits=Limits(memory_mib=2048)),
}


def task(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": name,
        "workspace": {"kind": "inline", "files": {}},
        "runner": {"kind": "external-command", "command": "true"},
        **fields,
    }


def suite(*tasks: dict[str, Any], **fields: Any) -> Suite:
    tree = {
        "version": 2,
        "suite": {"id": "s", "title": "T", "visibility": "private"},
        "matrix": {"targets": [{"id": "x"}, {"id": "y"}], "repeats": 2, "max_cost_usd": 3},
        "tasks": list(tasks or (task("a"), task("b"))),
        **fields,
    }
    return Suite.model_validate(tree, strict=False)


def script(text: str) -> Script:
    return Script.model_validate({"turns": [{"text": text}]}, strict=False)


def inputs(made: Suite, **fields: Any) -> PlanInputs:
    keys = [(t.id, target.id) for t in made.tasks for target in made.matrix.targets]
    return PlanInputs(
        run_id="r1",
        created_at="2026-01-01T00:00:00Z",
        suite=made,
        suite_sha256="1" * 64,
        file_name="s.yaml",
        policies=fields.pop("policies", POLICIES),
        fixture_recipes=fields.pop("fixture_recipes", dict.fromkeys(keys, "2" * 64)),
        images=fields.pop(
            "images", {name: PlannedImage(name=name, image_id=f"sha256:{name}") for name in IMAGES}
        ),
        provenance=fields.pop("provenance", PROVENANCE),
        **fields,
    )


def plan(made: Suite, **fields: Any) -> Plan:
    return make_plan(inputs(made, **fields))


def only(made: Suite, **fields: Any) -> PlannedTask:
    return plan(made, **fields).tasks[0]
