"""A candidate must not be able to make its own failed trial void: a void one enters no pass rate."""

from __future__ import annotations

import pytest

import run_samples as samples
from boxeval.rules.metrics import measure
from boxeval.rules.verdict import decide
from boxeval.spec.outcome import Outcome
from boxeval.spec.plan import PlannedTask
from boxeval.spec.suite import Verify
from boxeval.spec.trial import Observations


def outcome(task: PlannedTask, seen: Observations) -> Outcome:
    return decide(task, seen, measure(task, seen, 1))


@pytest.mark.parametrize("grade_incomplete", [False, True])
def test_a_shim_that_was_killed_for_want_of_memory(grade_incomplete: bool) -> None:
    verify = Verify(commands=("true",), grade_incomplete=grade_incomplete)
    lost = samples.box(error="the box ended without its shim's report", engine_oom_flag=True)
    found = outcome(samples.task(verify=verify), samples.seen(agent=lost, collected=None, grader=None))
    assert (found.weight, found.task, found.failure_class, found.limit) == (
        "scored",
        "failed",
        "oom",
        "memory",
    )


def test_a_lost_shim_without_the_engine_s_flag_stays_the_engine_s_fault() -> None:
    lost = samples.box(error="the box ended without its shim's report")
    found = outcome(samples.task(), samples.seen(agent=lost, collected=None, grader=None))
    assert (found.weight, found.failure_class) == ("void", "command_error")


@pytest.mark.parametrize(
    ("errno", "denied", "failure"),
    [
        ("fork:EAGAIN", 3, "resource_limit"),
        ("fork:EAGAIN", 0, "runner_failed"),
        ("cwd:ENOENT", 0, "runner_failed"),
    ],
)
def test_a_later_command_that_the_first_one_kept_from_starting(errno: str, denied: int, failure: str) -> None:
    box = samples.box(samples.command(), samples.unstarted(errno), pids_denied=denied)
    found = outcome(samples.task(), samples.seen(agent=box, collected=None, grader=None))
    assert (found.weight, found.task, found.failure_class) == ("scored", "failed", failure)


@pytest.mark.parametrize("errno", ["fork:EAGAIN", "cwd:ENOENT"])
def test_a_later_check_that_the_candidate_s_code_kept_from_starting(errno: str) -> None:
    box = samples.box(samples.command(), samples.unstarted(errno))
    found = outcome(samples.task(verify=Verify(commands=("build", "test"))), samples.seen(grader=box))
    assert (found.weight, found.task, found.failure_class) == ("scored", "failed", "verifier_failed")


def test_a_first_command_that_cannot_start_is_no_doing_of_the_candidate() -> None:
    first = samples.box(samples.unstarted("fork:EAGAIN"))
    assert outcome(samples.task(), samples.seen(agent=first, collected=None)).weight == "void"
    grader = samples.seen(grader=samples.box(samples.unstarted("fork:EAGAIN")))
    assert outcome(samples.task(verify=Verify(commands=("test",))), grader).weight == "void"
