"""Rows of the outcomes table for steps, boundaries and protected files, and which of them wins."""

from __future__ import annotations

from typing import Any

import pytest

import run_samples as samples
from boxeval.rules.enforcement import contradiction
from boxeval.rules.metrics import measure
from boxeval.rules.verdict import decide
from boxeval.spec.outcome import Outcome
from boxeval.spec.trial import Collected, Enforcement, Observations, PutBack
from run_samples import bounded, box, change, command, planned_step, seen, step, timed_out, traffic, unstarted

BOUNDED = samples.task(writes=("w/",), verify={"commands": ("make",), "forbid_paths": ("tests/",)})
STEPS = samples.task(steps=(planned_step("one", verify=("check",)), planned_step("two", writes=("w/",))))
OUT = Collected(changes=(change("tests/a.py"),))
IN = Collected(changes=(change("w/a"),))
DONE = Collected()


def outcome(task: Any, observed: Observations) -> Outcome:
    return decide(task, observed, measure(task, observed, 10))


def single(collected: Collected = IN, kept: Collected | None = None, **more: Any) -> Observations:
    return seen(collected=collected, enforced=bounded(BOUNDED, collected, kept), **more)


def steps(*taken: Any, **more: Any) -> Observations:
    return seen(**{"agent": None, "steps": taken, **more})


def one(**more: Any) -> Any:
    return step("one", **{"enforced": bounded(STEPS, DONE, step=0), "verify": box(), **more})


def two(collected: Collected = IN, kept: Collected | None = None, **more: Any) -> Any:
    before = (one(),)
    enforced = bounded(STEPS, collected, kept, step=1, before=before)
    return step("two", **{"collected": collected, "enforced": enforced, **more})


@pytest.mark.parametrize(
    ("task", "observed", "failure", "grading", "detail"),
    [
        (BOUNDED, single(), None, "completed", None),
        (
            BOUNDED,
            single(OUT, DONE),
            "writes_boundary_violation",
            "completed",
            "agent wrote outside its boundary: tests/a.py (created); rolled back",
        ),
        # It is found before a forbidden path, and whatever the grader says or fails to say.
        (BOUNDED, single(OUT, OUT), "writes_boundary_violation", "completed", "1 could not be put back"),
        (BOUNDED, single(OUT, DONE, grader=box(command(1))), "writes_boundary_violation", "completed", ""),
        (BOUNDED, single(OUT, DONE, grader=box(timed_out())), "writes_boundary_violation", "completed", ""),
        (BOUNDED, single(OUT, DONE, grader=None), "writes_boundary_violation", "completed", ""),
        (BOUNDED, single(OUT, DONE, grader=box(survivors=1)), "isolation_failed", "error", "grader"),
        # The turn itself comes first.
        (
            BOUNDED,
            single(OUT, DONE, agent=box(command(1))),
            "runner_failed",
            "not_requested",
            "agent exited 1",
        ),
        (BOUNDED, seen(collected=IN), "evidence_missing", "unavailable", "no verdict on its write boundary"),
        (BOUNDED, single(Collected(limit="more")), "resource_limit", "not_requested", "more"),
        (
            samples.task(protect=("tests/",)),
            seen(),
            "evidence_missing",
            "unavailable",
            "protected paths were not looked at",
        ),
        (samples.task(writes=(), verify={}), single(DONE), None, "completed", None),
        (STEPS, steps(one(), two()), None, "completed", None),
        (STEPS, steps(), "command_error", "not_requested", "no step left a report"),
        (STEPS, steps(one()), "command_error", "not_requested", "step two left no report"),
        (STEPS, steps(two(), one()), "command_error", "not_requested", "no step left a report"),
        (STEPS, steps(one(), two(), two()), "command_error", "not_requested", "no step left a report"),
        (STEPS, steps(one(agent=box(command(2)))), "runner_failed", "not_requested", "step one exited 2"),
        (
            STEPS,
            steps(one(), two(agent=box(timed_out()))),
            "timeout",
            "not_requested",
            "step two passed its deadline of 7000 ms and was killed",
        ),
        (
            STEPS,
            steps(one(), two(agent=box(survivors=1))),
            "isolation_failed",
            "not_requested",
            "step two: 1",
        ),
        (
            STEPS,
            steps(one(), two(agent=box(error="gone"))),
            "command_error",
            "not_requested",
            "step two: gone",
        ),
        (STEPS, steps(one(agent=box(unstarted("cwd:ENOENT")))), "command_error", "not_requested", "step one"),
        (
            STEPS,
            steps(one(), two(agent=box(unstarted("cwd:ENOENT")))),
            "runner_failed",
            "not_requested",
            "step two could not be started",
        ),
        (
            STEPS,
            steps(one(verify=box(command(4)))),
            "verifier_failed",
            "completed",
            "check of step one: command 1 of 1 exited 4: check",
        ),
        (
            STEPS,
            steps(one(verify=None)),
            "grader_error",
            "error",
            "check of step one: its box left no report",
        ),
        (
            STEPS,
            steps(one(verify=box(timed_out()))),
            "timeout",
            "error",
            "check of step one: command 1 of 1 passed the deadline of 9000 ms",
        ),
        (STEPS, steps(one(verify=box(survivors=2))), "isolation_failed", "error", "check of step one"),
        (STEPS, steps(one(), two(OUT, DONE)), "writes_boundary_violation", "completed", "step two wrote"),
        (STEPS, steps(one(collected=None)), "evidence_missing", "unavailable", "step one: no changes"),
        (STEPS, steps(one(), two(enforced=None)), "evidence_missing", "unavailable", "no verdict"),
        (
            STEPS,
            steps(one(), two(), traffic=traffic(failed_before_first_turn=True, error="401")),
            "provider_error",
            "not_requested",
            "401",
        ),
    ],
)
def test_rows(
    task: Any, observed: Observations, failure: str | None, grading: str, detail: str | None
) -> None:
    found = outcome(task, observed)
    assert (found.failure_class, found.grading) == (failure, grading), found
    assert detail is None or detail in (found.detail or "")


@pytest.mark.contract("S29")
@pytest.mark.parametrize(
    ("task", "observed", "counts"),
    [
        (samples.task(), seen(), (0, None, None, None, None)),
        (BOUNDED, single(), (1, True, 0, 0, 0)),
        (BOUNDED, single(OUT, DONE), (1, True, 1, 1, 0)),
        (BOUNDED, single(OUT, OUT), (1, True, 1, 0, 1)),
        (STEPS, steps(one(), two(OUT, DONE)), (2, True, 1, 1, 0)),
        (BOUNDED, samples.fault("setup_failed"), (0, None, None, None, None)),
    ],
)
def test_metrics(task: Any, observed: Observations, counts: tuple[object, ...]) -> None:
    names = (
        "verdictCount",
        "verdictSealed",
        "violationsDetected",
        "violationsRolledBack",
        "rollbackIncomplete",
    )
    found = measure(task, observed, 1)
    assert tuple(found[f"boundary.{name}"] for name in names) == counts


@pytest.mark.contract("S29")
def test_a_verdict_with_another_digest_is_not_sealed() -> None:
    enforced = bounded(BOUNDED, IN)
    assert enforced.boundary
    changed = enforced.boundary.model_copy(update={"rolled_back": ("x",)})
    observed = seen(collected=IN, enforced=enforced.model_copy(update={"boundary": changed}))
    assert measure(BOUNDED, observed, 1)["boundary.verdictSealed"] is False


def test_orphans_of_all_steps_are_counted() -> None:
    observed = steps(one(agent=box(orphans=1)), two(agent=box(orphans=2)))
    assert measure(STEPS, observed, 1)["process.orphanedChildren"] == 3
    broken = steps(one(agent=box(orphans=1)), two(agent=box(error="gone")))
    assert measure(STEPS, broken, 1)["process.orphanedChildren"] is None


PROTECTED = samples.task(protect=("tests/",))
RESTORED = Enforcement(restored=(PutBack(path="tests/a.py", kind="created"),), kept=DONE)


@pytest.mark.contract("S29")
@pytest.mark.parametrize(
    ("task", "observed", "said"),
    [
        (BOUNDED, single(), None),
        (BOUNDED, single(OUT, DONE), None),
        (STEPS, steps(one(), two(OUT, DONE)), None),
        (samples.task(), seen(), None),
        # A verdict on other changes, another allowance, another start, or none that was due.
        (BOUNDED, seen(collected=OUT, enforced=bounded(BOUNDED, DONE)), "does not follow"),
        (BOUNDED, seen(collected=DONE, enforced=bounded(STEPS, DONE, step=1)), "does not follow"),
        (BOUNDED, seen(collected=IN, enforced=bounded(BOUNDED, IN), fixture="1" * 64), "does not follow"),
        (BOUNDED, seen(enforced=Enforcement()), "missing"),
        (samples.task(), seen(enforced=bounded(BOUNDED, DONE)), "never due"),
        (STEPS, steps(one(collected=IN), two()), "does not follow"),
        # Protected paths that were changed and not put back.
        (PROTECTED, seen(collected=OUT, enforced=RESTORED), None),
        (PROTECTED, seen(collected=OUT, enforced=Enforcement()), "not all protected paths"),
        (PROTECTED, seen(collected=OUT, enforced=RESTORED.model_copy(update={"kept": OUT})), "not all"),
        (PROTECTED, seen(collected=OUT, enforced=RESTORED.model_copy(update={"kept": None})), "not all"),
    ],
)
def test_what_does_not_follow_from_the_evidence(task: Any, observed: Observations, said: str | None) -> None:
    found = contradiction(task, observed)
    assert found is None if said is None else said in (found or "")
