"""The schedule of faults follows from its seed alone, and the record of it cannot say otherwise."""

from __future__ import annotations

from typing import Any

import pytest

import run_samples as samples
from boxeval.rules.chaos import contradiction, schedule
from boxeval.rules.metrics import measure
from boxeval.rules.verdict import decide
from boxeval.spec.base import Scalar
from boxeval.spec.box import BoxResult
from boxeval.spec.chaos import Fault, Injected
from boxeval.spec.outcome import FailureClass
from boxeval.spec.plan import PlannedStep
from boxeval.spec.trial import Observations


def fault(at: Any = "mid-tool", **fields: Any) -> Fault:
    given = {"signal": "SIGINT", "target": "agent", "at": at, **fields}
    return Fault.model_validate(given, strict=False)


def strike(at: Any, kind: str) -> Fault:
    return Fault.model_validate({"fault": kind, "target": "box", "at": at}, strict=False)


def injected(number: int = 1, delay_ms: int = 0, at_ms: int = 5, delivered: bool = True) -> Injected:
    detail = None if delivered else "ESRCH"
    return Injected(number=number, delay_ms=delay_ms, at_ms=at_ms, delivered=delivered, detail=detail)


def seen(*faults: Injected, command: Any = None, **box: Any) -> Observations:
    ended = command or samples.command(130)
    return samples.seen(agent=samples.box(ended, injected=faults, **box), grader=None)


def delays(faults: tuple[Fault, ...], repeat: int = 1) -> list[int]:
    return [one.delay_ms for one in schedule(samples.task(faults=faults), repeat)]


def struck(name: str, *faults: Fault) -> PlannedStep:
    return samples.planned_step(name).model_copy(update={"faults": faults})


@pytest.mark.contract("S42")
def test_a_moment_follows_from_seed_repeat_and_place() -> None:
    # The first 8 bytes of the SHA-256 of "7:1:1" are 1d194ec3855cadb0; modulo 901 that is 629. The others likewise.
    random = fault({"betweenMs": (0, 900)}, seed=7)
    assert delays((random, random)) == [629, 789]
    assert delays((random,), 2) == [16]
    assert delays((fault({"betweenMs": (100, 1000)}, seed=7),)) == [729]
    assert delays((fault({"betweenMs": (3, 3)}),)) == [3]
    # Places are counted through all steps of a task.
    steps = (struck("a", random), struck("b"), struck("c", random))
    first, last = (schedule(samples.task(steps=steps), 1, steps[number]) for number in (0, 2))
    assert [(one.number, one.delay_ms) for one in (*first, *last)] == [(1, 629), (2, 789)]


def test_a_moment_by_name_or_by_the_clock_needs_no_seed() -> None:
    faults = (fault("start"), fault("mid-tool"), fault({"afterMs": 250}))
    task = samples.task(faults=faults)
    assert [(one.number, one.delay_ms, one.mid_tool) for one in schedule(task, 3)] == [
        (1, 0, False),
        (2, 0, True),
        (3, 250, False),
    ]


@pytest.mark.contract("S30")
@pytest.mark.parametrize(
    ("faults", "observed", "expected"),
    [
        ((), seen(), (None, None, None)),
        ((fault(seed=7),), seen(injected()), (7, True, 130)),
        ((fault(seed=7),), seen(), (7, False, 130)),
        ((fault(),), seen(injected(delivered=False)), (0, False, 130)),
        ((fault(), fault()), seen(injected()), (0, False, 130)),
        ((fault(),), seen(injected(), command=samples.killed(9)), (0, True, 137)),
        ((fault(),), seen(injected(), command=samples.timed_out()), (0, True, None)),
        ((fault(),), seen(injected(), error="engine"), (0, True, None)),
        ((fault(),), samples.fault("setup_failed"), (0, False, None)),
    ],
)
def test_metrics(faults: Any, observed: Observations, expected: tuple[Scalar, ...]) -> None:
    found = measure(samples.task(faults=faults), observed, 1)
    assert (found["chaos.seed"], found["chaos.faultInjected"], found["chaos.exitCode"]) == expected


ABC = (struck("a", fault(seed=7)), struck("b"), struck("c", strike("start", "container-kill")))


def of_steps(*boxes: BoxResult) -> Observations:
    steps = tuple(samples.step(step.id, agent=box) for step, box in zip(ABC, boxes, strict=False))
    return samples.seen(agent=None, grader=None, steps=steps)


BOTH = of_steps(
    samples.box(injected=(injected(),)),
    samples.box(),
    samples.box(samples.killed(9), injected=(injected(2),)),
)


@pytest.mark.contract("S30", "S42")
@pytest.mark.parametrize(
    ("observed", "expected"),
    [
        (BOTH, (7, True, 137)),
        # The first step has failed by its fault, so the last one was never struck.
        (of_steps(samples.box(samples.command(130), injected=(injected(),))), (7, False, 130)),
        # A step without faults says nothing of them.
        (of_steps(samples.box(injected=(injected(),)), samples.box(samples.command(3))), (7, False, 0)),
    ],
)
def test_metrics_of_steps(observed: Observations, expected: tuple[Scalar, ...]) -> None:
    task = samples.task(steps=ABC)
    found = measure(task, observed, 1)
    assert (found["chaos.seed"], found["chaos.faultInjected"], found["chaos.exitCode"]) == expected
    assert contradiction(task, observed, 1) is None


def test_the_step_that_was_struck_says_so_and_no_other_may() -> None:
    task = samples.task(steps=ABC)
    outcome = decide(task, BOTH, measure(task, BOTH, 1))
    assert outcome.detail == "step c was killed by SIGKILL; injected container-kill after 5 ms"
    for observed in (
        of_steps(samples.box(injected=(injected(2),))),
        of_steps(samples.box(), samples.box(injected=(injected(),))),
        of_steps(samples.box(), samples.box(), samples.box(injected=(injected(),))),
    ):
        assert "out of order" in (contradiction(task, observed, 1) or "")


@pytest.mark.contract("S27")
def test_a_box_that_was_killed_from_outside_tells_of_no_orphans() -> None:
    observed = seen(injected(), command=samples.killed(9))
    for planned, orphans in ((strike("mid-tool", "container-kill"), None), (fault(signal="SIGKILL"), 0)):
        found = measure(samples.task(faults=(planned,)), observed, 1)
        assert found["process.orphanedChildren"] == orphans


def test_an_ending_by_a_fault_is_scored_and_says_so() -> None:
    task = samples.task(faults=(strike("mid-tool", "container-kill"),))
    observed = seen(injected(at_ms=12), command=samples.killed(9))
    outcome = decide(task, observed, measure(task, observed, 1))
    assert outcome.failure_class is FailureClass.RUNNER_FAILED
    assert outcome.detail == "agent was killed by SIGKILL; injected container-kill after 12 ms"


AT_629 = (fault({"betweenMs": (0, 900)}, seed=7),)
TWICE = (fault(), fault({"afterMs": 10}))


@pytest.mark.contract("S42")
@pytest.mark.parametrize(
    ("faults", "observed", "fault_told"),
    [
        (AT_629, seen(injected(delay_ms=629, at_ms=629)), None),
        (AT_629, seen(), None),
        (AT_629, seen(injected(delay_ms=628, at_ms=700)), "another moment"),
        (AT_629, seen(injected(delay_ms=629, at_ms=628)), "another moment"),
        (TWICE, seen(injected(), injected(2, 10, 15)), None),
        (TWICE, seen(injected(), injected(2, 10, 14)), "another moment"),
        (TWICE, seen(injected(2, 10, 15)), "out of order"),
        (TWICE, seen(injected(), injected(2, 10, 15), injected(3, 0, 20)), "out of order"),
        ((), seen(injected()), "out of order"),
        ((), samples.seen(grader=samples.box(injected=(injected(),))), "none is planned"),
        (
            (),
            samples.seen(agent=None, steps=(samples.step("a", agent=samples.box(injected=(injected(),))),)),
            "none is planned",
        ),
    ],
)
def test_the_record_must_follow_from_the_schedule(
    faults: Any, observed: Observations, fault_told: str | None
) -> None:
    found = contradiction(samples.task(faults=faults), observed, 1)
    assert found is None if fault_told is None else fault_told in (found or "")


def test_a_record_keeps_its_faults_in_order() -> None:
    box = samples.box(injected=(injected(), injected(2, 10, 15)))
    assert BoxResult.model_validate_json(box.model_dump_json()) == box
