"""Plans: order, precedence, defaults and overrides (contract S8, S9, S17, surface.md)."""

from __future__ import annotations

import dataclasses
import hashlib

import pytest

from boxeval.errors import UsageError
from boxeval.rules.planning import Selection, check_memory, default_jobs, trial_id
from boxeval.spec.plan import Plan
from boxeval.spec.policy import Limits, Policy
from plan_samples import IMAGES, POLICIES, only, plan, script, suite, task


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
    assert only(made, models=SCRIPTS, model=override).model == script(expected)


def test_commands_have_no_script_and_an_unknown_model_is_named() -> None:
    made = suite(models={"m": {"script": "m.yaml"}}, defaults={"model": "m"})
    assert only(made, models={"m": script("m")}).model is None
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
