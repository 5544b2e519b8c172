"""What keeps a run from going on, by name."""

from __future__ import annotations

from typing import Any

import pytest

import run_samples as samples
from boxeval.rules.same_plan import differences
from boxeval.spec.policy import Policy

PLAN = samples.plan(samples.task(), samples.task("other"), repeats=2)


ALL = {("fix", "base"), ("other", "base")}


def changed(**fields: Any) -> Any:
    tasks = (PLAN.tasks[0].model_copy(update=fields), PLAN.tasks[1])
    return PLAN.model_copy(update={"tasks": tasks})


def test_the_same_plan_has_no_differences() -> None:
    assert differences(PLAN, PLAN.model_copy(), ALL) == ()


def test_a_comment_in_the_suite_is_none() -> None:
    suite = PLAN.suite.model_copy(update={"sha256": samples.sha("# a comment")})
    assert differences(PLAN, PLAN.model_copy(update={"suite": suite}), ALL) == ()


@pytest.mark.contract("P19")
@pytest.mark.parametrize(
    ("now", "words"),
    [
        (changed(agent_timeout_ms=5), "task fix[base].agentTimeoutMs was 60000, is 5"),
        (changed(env={"A": "1"}), 'task fix[base].env.A was absent, is "1"'),
        (changed(policy="strict"), 'task fix[base].policy was "default", is "strict"'),
        (
            PLAN.model_copy(update={"trials": PLAN.trials[:-1]}),
            'trial other[base]#2 was "other-base-2", is absent',
        ),
        (PLAN.model_copy(update={"hermetic": False}), "hermetic was true, is false"),
        (
            PLAN.model_copy(update={"provenance": PLAN.provenance.model_copy(update={"boxeval": "9.9"})}),
            'provenance.boxeval was "0.1.0", is "9.9"',
        ),
        (
            PLAN.model_copy(update={"policies": {"default": Policy(version=1, id="default", uid=7)}}),
            "policies.default.uid was 10001, is 7",
        ),
    ],
)
def test_a_difference_is_named_with_both_values(now: Any, words: str) -> None:
    assert words in differences(PLAN, now, ALL)


def test_a_long_value_is_cut() -> None:
    (line,) = [d for d in differences(PLAN, changed(title="x" * 500), ALL) if "title" in d]
    assert len(line) < 150


def test_files_count_for_what_is_still_to_run() -> None:
    """A trial that passed may have written its changes back, and needs its files no more."""
    now = changed(fixture_recipe=samples.sha("written back"))
    assert len(differences(PLAN, now, ALL)) == 1
    assert differences(PLAN, now, {("other", "base")}) == ()
