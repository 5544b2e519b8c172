"""From statuses to grading and verdict, each case by hand from contract G62, and to scores (V38)."""

from __future__ import annotations

import itertools

import pytest

import run_samples as samples
from boxeval.rules.reduction import mean_score, reduce, weighed
from boxeval.spec.graded import CheckStatus, CheckVerdict
from boxeval.spec.outcome import Execution

P, F, E, U = CheckStatus.PASSED, CheckStatus.FAILED, CheckStatus.ERROR, CheckStatus.UNAVAILABLE
DONE = Execution.COMPLETED


@pytest.mark.contract("G5", "G6", "G7", "G62")
@pytest.mark.parametrize(
    ("execution", "wanted", "statuses", "complete", "grading", "task"),
    [
        (DONE, 2, (P, P), True, "completed", "passed"),
        (DONE, 2, (P, F), True, "completed", "failed"),
        (DONE, 2, (P, E), True, "error", "not_assessed"),
        (DONE, 2, (F, E), True, "error", "failed"),
        (DONE, 2, (P, U), True, "unavailable", "not_assessed"),
        (DONE, 2, (F, U), True, "unavailable", "failed"),
        (DONE, 3, (E, U, F), True, "error", "failed"),
        (DONE, 2, (P,), True, "unavailable", "not_assessed"),
        (DONE, 1, (P, P), True, "unavailable", "not_assessed"),
        (DONE, 2, (P, P), False, "unavailable", "not_assessed"),
        (DONE, 2, (P, F), False, "unavailable", "failed"),
        (DONE, 0, (), True, "not_requested", "not_assessed"),
        (DONE, 0, (), False, "unavailable", "not_assessed"),
        (Execution.FAILED, 1, (P,), True, "not_requested", "not_assessed"),
        (Execution.FAILED, 1, (F,), True, "not_requested", "not_assessed"),
        (Execution.FAILED, 1, (E,), True, "error", "not_assessed"),
        (Execution.CANCELLED, 1, (), True, "not_requested", "not_assessed"),
        (Execution.NOT_RUN, 1, (), True, "not_requested", "not_assessed"),
    ],
)
def test_the_reduction(
    execution: Execution,
    wanted: int,
    statuses: tuple[CheckStatus, ...],
    complete: bool,
    grading: str,
    task: str,
) -> None:
    for order in set(itertools.permutations(statuses)):
        assert reduce(execution, wanted, order, complete) == (grading, task)


@pytest.mark.contract("G7")
def test_nothing_but_all_passed_is_a_pass() -> None:
    for count in range(4):
        for statuses in itertools.product(CheckStatus, repeat=count):
            for complete in (True, False):
                _, task = reduce(DONE, count, statuses, complete)
                assert (task == "passed") == (complete and count > 0 and set(statuses) == {P})


def verdict(status: CheckStatus, score: float | None = None) -> CheckVerdict:
    return CheckVerdict(status=status, score=score)


@pytest.mark.contract("V38")
@pytest.mark.parametrize(
    ("verdicts", "threshold", "task"),
    [
        ([verdict(P)] * 7 + [verdict(F)] * 3, 0.7, "passed"),  # 0.7
        ([verdict(P)] * 2 + [verdict(F)], 0.7, "failed"),  # 0.667
        ([verdict(F, 0.4), verdict(P)], 0.7, "passed"),  # 0.7
        ([verdict(F, 0.39), verdict(P)], 0.7, "failed"),
        ([verdict(P), verdict(E)], 0.7, "not_assessed"),  # between 0.5 and 1
        ([verdict(P), verdict(E)], 0.5, "not_assessed"),
        ([verdict(F), verdict(F), verdict(E)], 0.7, "failed"),  # at most 0.333
        ([verdict(P), verdict(U)], 0.7, "not_assessed"),
        ([verdict(F)], 0.7, "failed"),
        ([verdict(P, 1.0)], 1.0, "passed"),
    ],
)
def test_weighted_scoring(verdicts: list[CheckVerdict], threshold: float, task: str) -> None:
    assert reduce(DONE, len(verdicts), weighed(verdicts, threshold))[1] == task


def test_the_mean_is_over_decided_checks_alone() -> None:
    assert mean_score([verdict(P), verdict(F), verdict(F, 0.25), verdict(P)]) == 0.5625
    assert mean_score([verdict(P), verdict(E)]) is None
    assert mean_score([]) is None


@pytest.mark.contract("V38")
def test_a_trial_is_scored_as_its_suite_says() -> None:
    checks = tuple(samples.checked(f"c{n}", "passed" if n < 7 else "failed") for n in range(10))
    declared = [samples.declared(f"c{n}") for n in range(10)]
    binary = samples.task(verify={"checks": declared})
    weighted = samples.task(verify={"checks": declared, "scoring": "weighted"})
    strict = samples.task(verify={"checks": declared, "scoring": "weighted", "threshold": 0.71})
    observed = samples.seen(grader=None, checks=checks)
    assert samples.trial(binary, observed).outcome.task == "failed"
    assert samples.trial(weighted, observed).outcome.task == "passed"
    outcome = samples.trial(strict, observed).outcome
    assert outcome.task == "failed"
    assert (outcome.detail or "").startswith("the mean score is 0.700, under 0.71; check c7 (boxeval.regex)")
    assert samples.trial(weighted, observed).metrics["checks.score"] == 0.7
    assert samples.trial(weighted, observed).metrics["checks.failed"] == 3
