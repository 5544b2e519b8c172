"""States of cases and runs, and exit codes of case runs (contract G59, G61, G62)."""

from __future__ import annotations

import itertools

import pytest

from boxeval.rules.case_states import UNSEEN, case_states, exit_code, run_states
from boxeval.spec.case_result import States
from boxeval.spec.outcome import Execution, Grading, TaskState


def states(execution: str = "completed", grading: str = "completed", task: str = "passed") -> States:
    return States(execution=Execution(execution), grading=Grading(grading), task=TaskState(task))


PASSED, FAILED = states(), states(task="failed")
ERROR = states(grading="error", task="not_assessed")
UNAVAILABLE = states(grading="unavailable", task="not_assessed")
BROKEN = states("failed", "not_requested", "not_assessed")
NO_CHECKS = states(grading="not_requested", task="not_assessed")
CANCELLED = states("cancelled", "not_requested", "not_assessed")


@pytest.mark.contract("G59")
@pytest.mark.parametrize(
    ("passed", "trials", "threshold", "expected"),
    [
        (3, 3, 1.0, "passed"),
        (2, 3, 1.0, "failed"),
        (2, 3, 0.6667, "failed"),
        (2, 3, 0.6666, "passed"),
        (1, 10, 0.1, "passed"),
        (3, 10, 0.3, "passed"),
        (7, 10, 0.7, "passed"),
        (69, 100, 0.7, "failed"),
        (0, 3, 0.0001, "failed"),
    ],
)
def test_a_case_passes_at_its_threshold(passed: int, trials: int, threshold: float, expected: str) -> None:
    made = [PASSED] * passed + [FAILED] * (trials - passed)
    assert case_states(made, threshold) == states(task=expected)


@pytest.mark.contract("G59", "G7")
@pytest.mark.parametrize("other", [ERROR, UNAVAILABLE, BROKEN, NO_CHECKS, CANCELLED, UNSEEN])
def test_one_trial_that_is_not_assessed_leaves_the_case_not_assessed(other: States) -> None:
    for made in ([PASSED, PASSED, other], [other, FAILED]):
        found = case_states(made, 0.1)
        assert (found.task, found.execution, found.grading) == (
            "not_assessed",
            other.execution,
            other.grading,
        )


@pytest.mark.contract("G62")
def test_a_case_shows_the_worst_of_its_trials() -> None:
    found = case_states([PASSED, UNAVAILABLE, ERROR, CANCELLED, BROKEN], 1.0)
    assert (found.execution, found.grading) == ("failed", "error")
    assert case_states([], 1.0) == UNSEEN


@pytest.mark.contract("G62")
@pytest.mark.parametrize(
    ("cases", "expected"),
    [
        ([PASSED, PASSED], "passed"),
        ([PASSED, NO_CHECKS], "not_assessed"),
        ([NO_CHECKS, FAILED, PASSED], "failed"),
        ([], "not_assessed"),
    ],
)
def test_a_run_is_as_good_as_its_cases(cases: list[States], expected: str) -> None:
    assert run_states(cases).task == expected


@pytest.mark.contract("G61")
@pytest.mark.parametrize(
    ("run", "code"),
    [
        (PASSED, 0),
        (NO_CHECKS, 0),
        (FAILED, 1),
        (BROKEN, 2),
        (CANCELLED, 2),
        (UNSEEN, 2),
        (ERROR, 3),
        (states(grading="error", task="failed"), 3),
        (UNAVAILABLE, 4),
        (states(grading="unavailable", task="failed"), 4),
        (states("failed", "error", "failed"), 2),
    ],
)
def test_exit_codes_in_their_precedence(run: States, code: int) -> None:
    assert exit_code(run) == code
    assert exit_code(run, signal=2) == 130
    assert exit_code(run, signal=15) == 143


@pytest.mark.contract("G58")
def test_a_dry_run_is_good_only_if_all_was_prepared() -> None:
    assert exit_code(UNSEEN, prepared=True) == 0
    assert exit_code(UNSEEN, prepared=False) == 2


@pytest.mark.contract("G7", "G62")
def test_nothing_that_is_not_a_pass_exits_0_as_one() -> None:
    for execution, grading, task in itertools.product(Execution, Grading, TaskState):
        run = States(execution=execution, grading=grading, task=task)
        if exit_code(run) == 0:
            assert execution is Execution.COMPLETED
            assert grading in (Grading.COMPLETED, Grading.NOT_REQUESTED)
            assert task is not TaskState.FAILED
