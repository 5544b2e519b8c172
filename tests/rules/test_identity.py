"""Identity: named dimensions, each of which counts alone, and nothing else does (contract G69, G70)."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from typing import Any

import pytest
import rfc8785

from boxeval.rules.identity import DIMENSIONS, differences, digests, dimensions, identity
from boxeval.rules.planning import make_plan
from boxeval.spec.case_run import CaseRun, Route
from boxeval.spec.plan import Plan, PlannedImage, PlannedTask
from boxeval.spec.policy import Limits, Policy
from boxeval.spec.suite import Suite
from plan_samples import IMAGES, POLICIES, inputs, only, plan, script, suite, task
from run_samples import PROVENANCE

CASE = CaseRun(
    condition="passive",
    threshold=1.0,
    candidate=Route(host="reference"),
    project="a" * 64,
    runtime="b" * 64,
    settings="c" * 64,
)


PAIRS = (("a", "x"), ("a", "y"))


def base(**fields: Any) -> Plan:
    return plan(fields.pop("made", suite(task("a"))), **{"case": CASE, **fields})


def case(**changes: Any) -> Plan:
    return base(case=CASE.model_copy(update=changes))


def with_task(**fields: Any) -> Plan:
    return base(made=suite(task("a", **fields)))


def target(**fields: Any) -> Plan:
    return base(made=suite(task("a"), matrix={"targets": [{"id": "x", **fields}], "repeats": 2}))


def images_but(name: str) -> dict[str, PlannedImage]:
    same = {key: PlannedImage(name=key, image_id=f"sha256:{key}") for key in IMAGES}
    return same | {name: PlannedImage(name=name, image_id="sha256:new")}


def runner(command: str, **fields: Any) -> dict[str, Any]:
    return {"kind": "external-command", "command": command, **fields}


def scripted(text: str) -> Plan:
    made = suite(task("a", runner={"kind": "scripted", "prompt": "p", "script": "f.yaml"}))
    return base(made=made, models={"task:a": script(text)})


CHANGES: dict[str, tuple[str, Callable[[], Plan]]] = {
    "version": (
        "runner",
        lambda: base(provenance=PROVENANCE.model_copy(update={"boxeval": "1"})),
    ),
    "build": ("runner", lambda: base(provenance=PROVENANCE.model_copy(update={"build": "d" * 64}))),
    "project": ("project", lambda: case(project="d" * 64)),
    "runtime": ("configuration", lambda: case(runtime="d" * 64)),
    "settings": ("configuration", lambda: case(settings="d" * 64)),
    "env": ("configuration", lambda: target(env={"A": "1"})),
    "not hermetic": ("configuration", lambda: base(hermetic=False)),
    "command": ("case", lambda: with_task(runner=runner("false"))),
    "stdin": ("case", lambda: with_task(runner=runner("true", stdin="in"))),
    "turn's deadline": ("case", lambda: with_task(runner=runner("true", timeout_ms=5))),
    "fixture": ("fixture", lambda: base(fixture_recipes=dict.fromkeys(PAIRS, "3" * 64))),
    "commands": ("checks", lambda: with_task(verify={"commands": ["true"]})),
    "files": ("checks", lambda: with_task(verify={"files": {"t": "x"}})),
    "grader's deadline": ("checks", lambda: with_task(verify={"timeout_ms": 5})),
    "writes": ("checks", lambda: with_task(writes=["a"])),
    "protect": ("checks", lambda: with_task(protect=["a"])),
    "scoring": ("evaluator", lambda: with_task(verify={"scoring": "weighted"})),
    "threshold of scoring": ("evaluator", lambda: with_task(verify={"threshold": 0.5})),
    "required evidence": ("requiredEvidence", lambda: with_task(required_evidence=["boxeval.message"])),
    "grading": ("evaluator", lambda: with_task(verify={"grade_incomplete": True})),
    "target": ("route", lambda: target(id="z")),
    "effort": ("route", lambda: target(thinking="high")),
    "judge": ("route", lambda: case(semantic=Route(host="claude"))),
    "trials": ("trials", lambda: base(repeats=3)),
    "threshold": ("threshold", lambda: case(threshold=0.5)),
    "image": ("image", lambda: base(images=images_but("boxeval/base"))),
    "grader's image": ("graderImage", lambda: base(images=images_but("boxeval/grader"))),
    "policy": (
        "policy",
        lambda: base(
            policies=POLICIES
            | {"default": Policy(version=1, id="default", hermetic=False, limits=Limits(pids=9))}
        ),
    ),
    "dry": ("mode", lambda: case(dry=True)),
    "extension": ("extension", lambda: with_task(verify={"extension": {"command": ["x"]}})),
    "extension's files": ("extension", lambda: base(extensions=dict.fromkeys(PAIRS, "4" * 64))),
    "skills": (
        "instrumentation",
        lambda: with_task(runner=runner("true", host={"skills": {"guide": "Read me."}})),
    ),
}


@pytest.mark.contract("G69", "G70")
@pytest.mark.parametrize("change", CHANGES)
def test_each_change_is_in_one_dimension_and_in_the_identity(change: str) -> None:
    name, make = CHANGES[change]
    one, other = base(), make()
    found = differences(dimensions(one, one.tasks[0]), dimensions(other, other.tasks[0]))
    assert found == (name,)
    assert one.tasks[0].identity != other.tasks[0].identity


def test_every_dimension_is_changed_by_one_of_them() -> None:
    untried = set(DIMENSIONS) - {name for name, _ in CHANGES.values()}
    # `condition` has one value, and `graders` go with checks.
    assert untried == {"condition", "graders"}


def test_a_check_counts_by_what_it_asks_and_by_its_grader() -> None:
    def checking(grader: str, **configuration: str) -> Plan:
        check = {"id": "c", "grader": f"boxeval.{grader}", "configuration": configuration}
        return with_task(verify={"checks": [check]})

    def differ(one: Plan, other: Plan) -> tuple[str, ...]:
        return differences(dimensions(one, one.tasks[0]), dimensions(other, other.tasks[0]))

    regex = checking("regex", pattern="a")
    assert differ(regex, checking("regex", pattern="b")) == ("checks",)
    assert differ(regex, checking("shell", run="true")) == ("checks", "graders")


def test_the_scripts_of_a_model_are_its_route() -> None:
    one, other = scripted("one"), scripted("two")
    assert differences(dimensions(one, one.tasks[0]), dimensions(other, other.tasks[0])) == ("route",)


@pytest.mark.contract("G69")
def test_an_exact_repeat_is_equal_whatever_it_is_called_and_wherever_it_runs() -> None:
    made = inputs(suite(task("a")), case=CASE)
    moved = PROVENANCE.model_copy(update={"kernel": "7", "python": "3.12", "engine_version": "29"})
    later = dataclasses.replace(
        made,
        run_id="r2",
        created_at="2027-01-01T00:00:00Z",
        file_name="other.yaml",
        suite_sha256="9" * 64,
        provenance=moved,
    )
    assert make_plan(later).tasks[0].identity == make_plan(made).tasks[0].identity
    named = {"title": "other", "tags": ["x"], "smoke": True, "exclusive": True, "expect": "passed"}
    same = [
        with_task(**named),
        with_task(workspace={"kind": "temp-copy", "path": "/somewhere/else"}),
        base(policies={"default": POLICIES["default"].model_copy(update={"description": "other words"})}),
        case(candidate=Route(host="reference", model="script:/home/me/elsewhere.yaml")),
    ]
    judges = [Route(host="claude", model=f"script:/{place}/judge.yaml") for place in ("here", "there")]
    assert len({case(semantic=judge).tasks[0].identity for judge in judges}) == 1
    assert {one.tasks[0].identity for one in same} == {base().tasks[0].identity}


@pytest.mark.contract("G69")
def test_the_identity_is_sha256_over_rfc_8785_bytes() -> None:
    one = base()
    named = dimensions(one, one.tasks[0])
    assert tuple(sorted(named)) == tuple(sorted(DIMENSIONS))
    canonical = rfc8785.dumps({"format": "boxeval.identity/2", "dimensions": named})
    assert one.tasks[0].identity == identity(named) == hashlib.sha256(canonical).hexdigest()
    # `true` is four bytes, in RFC 8785 as in JSON; a digest of a dimension is over its value alone.
    assert digests({"mode": True}) == {"mode": hashlib.sha256(b"true").hexdigest()}


def test_own_images_count_by_recipe_and_packages_not_by_digest() -> None:
    def with_images(recipe: str, packages: str, image_id: str) -> str:
        images = {
            name: PlannedImage(name=name, image_id=image_id, recipe=recipe * 64, packages=packages * 64)
            for name in IMAGES
        }
        return base(images=images).tasks[0].identity

    one = with_images("a", "b", "sha256:1")
    assert one == with_images("a", "b", "sha256:2")
    assert one != with_images("c", "b", "sha256:1")
    assert one != with_images("a", "c", "sha256:1")


def with_check(grader: str, **configuration: Any) -> dict[str, Any]:
    check = {"id": "c", "grader": grader, "configuration": configuration}
    one = with_task(verify={"checks": [check]})
    return dimensions(one, one.tasks[0])


@pytest.mark.contract("G69")
def test_a_check_counts_by_its_grader_and_by_what_it_is_told() -> None:
    one = with_check("boxeval.regex", pattern="a")
    assert differences(one, with_check("boxeval.regex", pattern="b")) == ("checks",)
    assert differences(one, with_check("boxeval.json", pointer="")) == ("checks", "graders")
    assert differences(one, with_check("sevro.regex", pattern="a")) == ()
    assert differences(with_check("boxeval.json"), with_check("boxeval.json", equals=None)) == ("checks",)


def test_a_field_that_nobody_placed_still_counts() -> None:
    """What is new in a task is in `case`, what is new in `verify` in `checks`: forgetting is no hole."""
    outside = {"dry", "title", "tags", "expect", "expect_class", "exclusive", "collect", "k", "identity"}
    outside |= {"image", "grader_image", "policy", "workspace", "runner", "verify"}
    one = base()
    named = dimensions(one, one.tasks[0])
    inside = set().union(*(value for value in named.values() if isinstance(value, dict)))
    assert set(PlannedTask.model_fields) - outside <= inside


def test_two_suites_in_one_plan_count_their_own_trials() -> None:
    made: Suite = suite(task("a", trials=3), task("b", trials=1))
    one = plan(made)
    assert [dimensions(one, item)["trials"] for item in one.tasks] == [3, 1, 3, 1]
    assert only(made).identity == one.tasks[0].identity
