"""Rows of the outcomes table that checks bring, and how they combine with commands and assertions."""

from __future__ import annotations

from typing import Any

import pytest

import run_samples as samples
from boxeval.rules.message import printed_message
from boxeval.spec.graded import FinalMessage, MessageStatus
from boxeval.spec.outcome import Outcome
from boxeval.spec.trial import Collected
from run_samples import box, checked, command, seen, timed_out

CHECK = samples.declared("c")
BOTH = samples.task(verify={"commands": ("true",), "checks": [CHECK]})
ONLY = samples.task(verify={"checks": [CHECK]})
LATE = checked(status="error", reason="passed its deadline of 5 ms", limit="time")
HUNGRY = checked(status="error", reason="its box ran out of memory", limit="memory")


def row(task: Any, **observed: Any) -> tuple[str, ...]:
    outcome = outcome_of(task, **observed)
    values = (outcome.grading, outcome.task, outcome.failure_class, outcome.weight, outcome.limit)
    return tuple(str(value or "") for value in values)


def outcome_of(task: Any, **observed: Any) -> Outcome:
    return samples.trial(task, seen(**observed)).outcome


@pytest.mark.contract("G5", "G7", "G19", "G62")
@pytest.mark.parametrize(
    ("task", "observed", "expected"),
    [
        (ONLY, {"checks": (checked(),)}, ("completed", "passed", "", "scored", "")),
        (
            ONLY,
            {"checks": (checked(status="failed"),)},
            ("completed", "failed", "verifier_failed", "scored", ""),
        ),
        (ONLY, {"checks": (LATE,)}, ("error", "not_assessed", "timeout", "void", "grader")),
        (ONLY, {"checks": (HUNGRY,)}, ("error", "not_assessed", "grader_error", "void", "memory")),
        (ONLY, {"checks": (checked(status="error"),)}, ("error", "not_assessed", "grader_error", "void", "")),
        (
            ONLY,
            {"checks": (checked(status="unavailable"),)},
            ("unavailable", "not_assessed", "evidence_missing", "void", ""),
        ),
        (ONLY, {}, ("unavailable", "not_assessed", "evidence_missing", "void", "")),
        (BOTH, {"checks": (checked(),)}, ("completed", "passed", "", "scored", "")),
        (
            BOTH,
            {"checks": (checked(),), "grader": box(command(1))},
            ("completed", "failed", "verifier_failed", "scored", ""),
        ),
        (
            BOTH,
            {"checks": (LATE,), "grader": box(command(1))},
            ("error", "failed", "verifier_failed", "scored", ""),
        ),
        (
            BOTH,
            {"checks": (checked(status="failed"),), "grader": box(timed_out())},
            ("error", "failed", "verifier_failed", "scored", ""),
        ),
        (
            BOTH,
            {"checks": (checked(),), "grader": box(timed_out())},
            ("error", "not_assessed", "timeout", "void", "grader"),
        ),
        (
            BOTH,
            {"checks": (checked(status="unavailable"),), "grader": box(timed_out())},
            ("error", "not_assessed", "timeout", "void", "grader"),
        ),
    ],
)
def test_rows(task: Any, observed: dict[str, Any], expected: tuple[str, ...]) -> None:
    assert row(task, **{"grader": None if task is ONLY else box(), **observed}) == expected


@pytest.mark.contract("G19")
def test_a_breach_in_the_box_of_a_check_voids_everything() -> None:
    broken = checked(status="failed", box=box(survivors=1))
    assert row(ONLY, checks=(broken,))[:3] == ("error", "not_assessed", "isolation_failed")


def test_assertions_come_after_checks() -> None:
    task = samples.task(verify={"checks": [CHECK], "assertions": (samples.wants("checks.score", "gte", 1),)})
    assert row(task, grader=None, checks=(checked(),))[1] == "passed"
    assert row(task, grader=None, checks=(checked(score=0.5),))[2] == "assertion_failed"
    assert row(task, grader=None, checks=(checked(status="failed"),))[2] == "verifier_failed"


def test_an_unfinished_turn_cannot_choose_to_be_void() -> None:
    """With gradeIncomplete, what the turn did not say is its own failure."""
    task = samples.task(verify={"checks": [CHECK], "grade_incomplete": True})
    missing = (checked(status="unavailable"),)
    assert row(task, agent=box(command(2)), grader=None, checks=missing)[1:4] == (
        "failed",
        "runner_failed",
        "scored",
    )
    assert row(task, agent=box(timed_out()), grader=None, checks=missing)[2] == "timeout"
    assert row(task, agent=box(command(2)), grader=None, checks=(checked(),))[1] == "passed"


@pytest.mark.contract("G7", "G62")
def test_required_evidence() -> None:
    complete = FinalMessage(status=MessageStatus.COMPLETE, size_bytes=1, sha256=samples.sha("x"))
    for name, has in (
        ("boxeval.message", {"message": complete}),
        ("boxeval.tokens", {"traffic": samples.traffic()}),
        ("boxeval.patch", {"collected": Collected(patch=samples.patch())}),
    ):
        task = samples.task(required_evidence=(name,))
        assert row(task)[:3] == ("unavailable", "not_assessed", "evidence_missing")
        assert name in (outcome_of(task).detail or "")
        assert row(task, **has)[1] == "passed"
        assert row(task, grader=box(command(1)))[1] == "failed"


def test_several_failures_are_named() -> None:
    names = ("a", "b", "c", "d", "e", "f", "g")
    task = samples.task(verify={"checks": [samples.declared(name) for name in names]})
    bad = tuple(checked(name, "failed", reason="no", expected="x", received="y") for name in names)
    said = outcome_of(task, grader=None, checks=bad).detail
    assert said == "check a (boxeval.regex): no; expected x, received y; failed too: b, c, d, e and more"


@pytest.mark.contract("G4")
@pytest.mark.parametrize(
    ("agent", "status"),
    [
        (box(command(stdout=samples.capture(b"hi", samples.sha("hi")))), "complete"),
        (box(command()), "missing"),
        (box(command(1, stdout=samples.capture(b"hi", samples.sha("hi")))), "incomplete"),
        (box(timed_out()), "incomplete"),
    ],
)
def test_the_message_of_a_candidate_that_prints(agent: Any, status: str) -> None:
    assert printed_message(ONLY, seen(agent=agent)).status == status


@pytest.mark.contract("G73")
def test_a_message_is_as_long_as_it_may_be() -> None:
    """8 MiB, and a byte more."""

    def message(size: int, truncated: bool = False) -> str:
        out = samples.capture(b"x", samples.sha("x")).model_copy(
            update={"size_bytes": size, "truncated": truncated}
        )
        return printed_message(ONLY, seen(agent=box(command(stdout=out)))).status.value

    assert message(8 * 1024 * 1024) == "complete"
    assert message(8 * 1024 * 1024 + 1) == "incomplete"
    assert message(100, truncated=True) == "incomplete"
