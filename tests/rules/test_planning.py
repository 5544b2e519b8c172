"""Plans: order, precedence, defaults, overrides and identity (contract S8, S9, S17, surface.md)."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import pytest

from boxeval.errors import UsageError
from boxeval.rules.planning import PlanInputs, Selection, check_memory, default_jobs, make_plan, trial_id
from boxeval.spec.models import Script
from boxeval.spec.plan import Plan, PlannedImage, PlannedTask, Provenance
from boxeval.spec.policy import Limits, Policy
from boxeval.spec.suite import Suite

PROVENANCE = Provenance(
    boxeval="0",
    python="3.11",
    engine="Docker",
    engine_version="20.10",
    runtime="runc",
    storage_driver="overlay2",
    cgroup_version="2",
    kernel="6",
    architecture="x86_64",
)
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
        provenance=PROVENANCE,
        **fields,
    )


def plan(made: Suite, **fields: Any) -> Plan:
    return make_plan(inputs(made, **fields))


def only(made: Suite, **fields: Any) -> PlannedTask:
    return plan(made, **fields).tasks[0]


@pytest.mark.contract("S17")
def test_trials_come_by_repeat_then_target_then_task() -> None:
    keys = [trial.key for trial in plan(suite()).trials]
    assert keys == ["a[x]#1", "b[x]#1", "a[y]#1", "b[y]#1", "a[x]#2", "b[x]#2", "a[y]#2", "b[y]#2"]


@pytest.mark.contract("S8")
def test_a_tasks_own_count_beats_the_matrix() -> None:
    keys = [trial.key for trial in plan(suite(task("a", trials=3), task("b", trials=1))).trials]
    assert keys == ["a[x]#1", "b[x]#1", "a[y]#1", "b[y]#1", "a[x]#2", "a[y]#2", "a[x]#3", "a[y]#3"]
    assert len(plan(suite(task("a", trials=3), task("b")), repeats=1).trials) == 4


def test_trial_ids() -> None:
    expected = "t" + hashlib.sha256(b"r1\0a\0x\x001").hexdigest()[:15]
    assert plan(suite()).trials[0].trial_id == trial_id("r1", "a", "x", 1) == expected
    assert len({trial.trial_id for trial in plan(suite()).trials}) == 8


def test_what_a_plan_says() -> None:
    made = suite(thresholds={"fail": [{"metric": "result.pass", "op": "eq", "value": False}]})
    found = plan(made, selection=Selection(tasks=("a",), targets=("y",)))
    assert (found.run_id, found.created_at) == ("r1", "2026-01-01T00:00:00Z")
    assert found.suite.model_dump() == {
        "id": "s",
        "title": "T",
        "visibility": "private",
        "sha256": "1" * 64,
        "file": "s.yaml",
    }
    assert found.selection == {"task": "a", "target": "y"}
    assert (len(found.trials), found.left_out) == (2, 6)
    assert (found.max_cost_usd, found.thresholds) == (3, made.thresholds.fail)
    assert list(found.policies) == ["default"]
    assert sorted(found.images) == ["boxeval/base", "boxeval/grader"]
    assert Plan.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize(
    ("where", "image", "grader"),
    [
        ((), "boxeval/base", "boxeval/grader"),
        (("defaults",), "defaults", "defaults"),
        (("defaults", "target"), "target", "target"),
        (("defaults", "target", "task"), "task", "task"),
        (("task", "verify"), "task", "verify"),
        (("verify",), "boxeval/base", "verify"),
    ],
)
def test_images(where: tuple[str, ...], image: str, grader: str) -> None:
    named = {name: name if name in where else None for name in IMAGES}
    made = suite(
        task("a", image=named["task"], verify={"image": named["verify"]}),
        matrix={"targets": [{"id": "x", "image": named["target"]}]},
        defaults={"image": named["defaults"]},
    )
    assert (only(made).image, only(made).grader_image) == (image, grader)


@pytest.mark.parametrize(
    ("of_task", "of_target", "of_defaults", "expected"),
    [
        (None, None, None, "default"),
        (None, None, "strict", "strict"),
        (None, "default", "strict", "default"),
        ("strict", "default", "default", "strict"),
    ],
)
def test_policies(of_task: str | None, of_target: str | None, of_defaults: str | None, expected: str) -> None:
    made = suite(
        task("a", policy=of_task),
        matrix={"targets": [{"id": "x", "policy": of_target}]},
        defaults={"policy": of_defaults},
    )
    assert only(made).policy == expected
    assert list(plan(made).policies) == [expected]


@pytest.mark.parametrize(
    ("runner", "of_task", "of_defaults", "verify", "expected"),
    [
        (None, None, None, None, (60_000, 60_000)),
        (None, None, 7, None, (7, 7)),
        (None, 8, 7, None, (8, 8)),
        (5, 8, 7, None, (5, 8)),
        (9, 8, None, None, (8, 8)),
        (None, 8, None, 20, (8, 20)),
    ],
)
def test_deadlines(
    runner: int | None,
    of_task: int | None,
    of_defaults: int | None,
    verify: int | None,
    expected: tuple[int, int],
) -> None:
    made = suite(
        task(
            "a",
            runner={"kind": "external-command", "command": "true", "timeout_ms": runner},
            verify={"timeout_ms": verify},
            timeout_ms=of_task,
        ),
        defaults={"timeout_ms": of_defaults},
    )
    assert (only(made).agent_timeout_ms, only(made).grader_timeout_ms) == expected


def test_the_runners_environment_beats_the_targets() -> None:
    runner = {"kind": "external-command", "command": "true", "env": {"A": "runner", "B": "2"}}
    made = suite(
        task("a", runner=runner), matrix={"targets": [{"id": "x", "env": {"A": "target", "C": "3"}}]}
    )
    assert only(made).env == {"A": "runner", "B": "2", "C": "3"}


SCRIPTS = {"d": script("d"), "t": script("t"), "o": script("o"), "task:a": script("task")}


@pytest.mark.parametrize(
    ("own", "of_target", "of_defaults", "override", "expected"),
    [
        (None, None, "d", None, "d"),
        (None, "t", "d", None, "t"),
        (None, "t", "d", "o", "o"),
        ("f.yaml", "t", "d", None, "task"),
        ("f.yaml", "t", "d", "o", "task"),
    ],
)
def test_models(
    own: str | None, of_target: str | None, of_defaults: str | None, override: str | None, expected: str
) -> None:
    made = suite(
        task("a", runner={"kind": "scripted", "prompt": "p", "script": own}),
        matrix={"targets": [{"id": "x", "model": of_target}]},
        defaults={"model": of_defaults},
        models={name: {"script": f"{name}.yaml"} for name in "dto"},
    )
    assert only(made, scripts=SCRIPTS, model=override).script == script(expected)


def test_commands_have_no_script_and_an_unknown_model_is_named() -> None:
    made = suite(models={"m": {"script": "m.yaml"}}, defaults={"model": "m"})
    assert only(made, scripts={"m": script("m")}).script is None
    with pytest.raises(UsageError, match="there is no model `n` in the suite"):
        plan(made, model="n")


TAGGED = suite(task("a", tags=["fast", "py"], smoke=True), task("b", tags=["py"]), task("c"))


@pytest.mark.contract("S8", "S9")
@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(), ["a", "b", "c"]),
        (Selection(tasks=("c", "a")), ["a", "c"]),
        (Selection(tags=("fast",)), ["a"]),
        (Selection(tags=("fast", "py")), ["a", "b"]),
        (Selection(tags=("py",), tasks=("b",)), ["b"]),
        (Selection(smoke=True), ["a"]),
    ],
)
def test_selection(selection: Selection, expected: list[str]) -> None:
    found = plan(TAGGED, selection=dataclasses.replace(selection, targets=("x",)), repeats=1)
    assert [trial.task for trial in found.trials] == expected
    assert found.left_out == 6 - len(expected)


@pytest.mark.contract("S8")
@pytest.mark.parametrize(
    ("selection", "said"),
    [
        (Selection(targets=("z",)), "there is no target `z` (known: `x`, `y`)"),
        (Selection(tasks=("A",)), "there is no task `A`; did you mean `a`? (known: `a`, `b`, `c`)"),
        (Selection(tags=("fst",)), "there is no tag `fst`; did you mean `fast`? (known: `fast`, `py`)"),
        (Selection(tasks=("b",), smoke=True), "no task is selected by --task b, --smoke"),
        (Selection(tasks=("c",), tags=("py",)), "no task is selected by --task c, --tag py"),
    ],
)
def test_selections_that_fit_nothing(selection: Selection, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan(TAGGED, selection=selection)
    assert str(caught.value) == said


@pytest.mark.contract("V3")
def test_a_run_that_is_not_hermetic_is_marked_and_a_policy_may_refuse_it() -> None:
    assert plan(suite()).hermetic
    assert not plan(suite(), hermetic=False).hermetic
    with pytest.raises(UsageError, match="BOXEVAL_HERMETIC=0 is refused by policy `strict`"):
        plan(suite(defaults={"policy": "strict"}), hermetic=False)


def identity(made: Suite, **fields: Any) -> str:
    return only(made, **fields).identity


def test_identity_depends_on_nothing_of_the_run_or_the_machine() -> None:
    base = identity(suite(task("a")))
    assert base == identity(suite(task("a", title="other", tags=["x"], smoke=True, exclusive=True)))
    made = inputs(suite(task("a")))
    later = dataclasses.replace(made, run_id="r2", created_at="2027-01-01T00:00:00Z", file_name="other.yaml")
    assert make_plan(later).tasks[0].identity == base
    elsewhere = {"kind": "temp-copy", "path": "/somewhere/else"}
    assert identity(suite(task("a", workspace=elsewhere))) == base
    described = {"default": POLICIES["default"].model_copy(update={"description": "other words"})}
    assert identity(suite(task("a")), policies=described) == base


def changed_dimensions() -> dict[str, str]:
    """An identity for each dimension that is changed alone."""
    runner = {"kind": "external-command", "command": "false"}
    tighter = {"default": Policy(version=1, id="default", hermetic=False, limits=Limits(pids=9))}
    keys = {("a", "x"): "3" * 64, ("a", "y"): "3" * 64}
    other = {name: PlannedImage(name=name, image_id=f"sha256:new-{name}") for name in IMAGES}
    scripted = suite(task("a", runner={"kind": "scripted", "prompt": "p", "script": "f.yaml"}))

    def target(**fields: Any) -> Suite:
        return suite(task("a"), matrix={"targets": [{"id": "x", **fields}]})

    return {
        "base": identity(suite(task("a"))),
        "task id": identity(suite(task("b"))),
        "command": identity(suite(task("a", runner=runner))),
        "verify": identity(suite(task("a", verify={"commands": ["true"]}))),
        "deadline": identity(suite(task("a", timeout_ms=5))),
        "fixture": identity(suite(task("a")), fixture_recipes=keys),
        "image": identity(suite(task("a")), images=images_but(other, "boxeval/base")),
        "grader image": identity(suite(task("a")), images=images_but(other, "boxeval/grader")),
        "policy": identity(suite(task("a")), policies=tighter),
        "target": identity(suite(task("a"), matrix={"targets": [{"id": "z"}]})),
        "thinking": identity(target(thinking="high")),
        "env": identity(target(env={"A": "1"})),
        "script": identity(scripted, scripts={"task:a": script("one")}),
        "another script": identity(scripted, scripts={"task:a": script("two")}),
    }


def images_but(other: dict[str, PlannedImage], name: str) -> dict[str, PlannedImage]:
    return {key: PlannedImage(name=key, image_id=f"sha256:{key}") for key in IMAGES} | {name: other[name]}


def test_identity_depends_on_every_dimension() -> None:
    found = changed_dimensions()
    assert len(set(found.values())) == len(found)


def test_own_images_count_by_recipe_and_packages_not_by_digest() -> None:
    def images(recipe: str, packages: str, image_id: str) -> dict[str, PlannedImage]:
        return {
            name: PlannedImage(name=name, image_id=image_id, recipe=recipe * 64, packages=packages * 64)
            for name in IMAGES
        }

    one = identity(suite(task("a")), images=images("a", "b", "sha256:1"))
    assert one == identity(suite(task("a")), images=images("a", "b", "sha256:2"))
    assert one != identity(suite(task("a")), images=images("c", "b", "sha256:1"))
    assert one != identity(suite(task("a")), images=images("a", "c", "sha256:1"))


@pytest.mark.parametrize(
    ("cpus", "memory_gib", "memory_mib", "expected"),
    [(2, 16, 1024, 2), (8, 4, 1024, 3), (8, 1, 1024, 1), (16, 64, 256, 16), (1, 64, 256, 1), (4, 8, 2048, 3)],
)
def test_default_jobs(cpus: int, memory_gib: int, memory_mib: int, expected: int) -> None:
    small = Policy(version=1, id="small", limits=Limits(memory_mib=64))
    large = Policy(version=1, id="large", limits=Limits(memory_mib=memory_mib))
    assert default_jobs(cpus, memory_gib << 30, [small, large]) == expected


def test_more_jobs_than_memory_is_told_with_the_arithmetic() -> None:
    check_memory(4, POLICIES, 8 << 30)
    with pytest.raises(UsageError) as caught:
        check_memory(5, POLICIES, 8 << 30)
    assert str(caught.value) == (
        "5 jobs x memoryMib 2048 of policy `strict` = 10240 MiB is more than the machine's 8192 MiB; "
        "lower --jobs or memoryMib"
    )
