"""Every row of the outcomes table, every edge between two rows."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import run_samples as samples
from boxeval.rules.metrics import measure
from boxeval.rules.verdict import decide
from boxeval.spec.outcome import Outcome
from boxeval.spec.trial import Collected, Observations
from run_samples import box, command, killed, seen, timed_out, traffic, unstarted

TASK = samples.task()
GRADE_INCOMPLETE = samples.task(verify={"commands": ("true",), "grade_incomplete": True})
FORBID = samples.task(verify={"commands": ("make", "pytest -q"), "forbid_paths": ("tests/",)})
NO_CHECKS = samples.task(verify={})

PASSED = ("completed", "completed", "passed", None, None, "scored")
NOTHING = ("completed", "not_requested", "not_assessed", None, None, "not_counted")
TOUCHED = Collected(changes=(samples.change("tests/a.py"),))


def scored(
    failure: str, execution: str = "completed", grading: str = "completed", kind: str = "assertion"
) -> Any:
    return (execution, grading, "failed", failure, kind, "scored")


def void(failure: str, execution: str = "failed", grading: str = "not_requested") -> Any:
    return (execution, grading, "not_assessed", failure, "infra", "void")


def ended(failure: str, kind: str = "assertion") -> Any:
    return scored(failure, "failed", "not_requested", kind)


def outcome(task: Any, observed: Observations) -> Outcome:
    return decide(task, observed, measure(task, observed, 10))


def row(found: Outcome) -> Any:
    values = (
        found.execution,
        found.grading,
        found.task,
        found.failure_class,
        found.verdict_class,
        found.weight,
    )
    return tuple(v.value if v is not None else None for v in values)


@pytest.mark.contract("V12")
@pytest.mark.parametrize(
    ("observed", "expected", "detail"),
    [
        (seen(), PASSED, None),
        (seen(grader=box(command(1))), scored("verifier_failed"), "command 1 of 1 exited 1: true"),
        (seen(grader=box(killed(11))), scored("verifier_failed"), "killed by SIGSEGV"),
        (seen(cancelled=True), void("cancelled", "cancelled"), "interrupted"),
        (samples.fault("setup_failed"), void("setup_failed", "not_run"), "why"),
        (samples.fault("cwd_missing"), void("cwd_missing", "not_run"), "why"),
        (samples.fault("budget_exhausted"), void("budget_exhausted", "not_run"), "why"),
        (samples.fault("command_error"), void("command_error"), "why"),
        (samples.fault("isolation_failed"), void("isolation_failed"), "why"),
        (samples.fault("provider_error"), void("provider_error"), "why"),
        (samples.fault("verifier_failed"), void("verifier_failed"), "why"),
        (seen(agent=box(differences=("pids: 0, not 256",))), void("isolation_failed"), "pids: 0, not 256"),
        (seen(agent=box(survivors=1)), void("isolation_failed"), "1 processes survived"),
        (seen(agent=box(settled=False)), void("isolation_failed"), "not seen to end"),
        (seen(agent=box(error="engine gone")), void("command_error"), "engine gone"),
        (seen(agent=box(error="engine gone", settled=False)), void("command_error"), "engine gone"),
        (seen(agent=box(error="engine gone", survivors=2)), void("isolation_failed"), "survived"),
        (seen(agent=None), void("command_error"), "no report"),
        (seen(agent=box().model_copy(update={"commands": ()})), void("command_error"), "no command"),
        (seen(agent=box(unstarted("ENOENT"))), void("command_error"), "could not be started: ENOENT"),
        (seen(agent=box(command(None))), void("command_error"), "did not report its end"),
        (
            seen(traffic=traffic(failed_before_first_turn=True, error="401")),
            void("provider_error"),
            "before its first turn: 401",
        ),
        (
            seen(traffic=traffic(limit="run_budget_tokens: spent", run_budget_spent=True)),
            void("budget_exhausted"),
            "a request was refused: run_budget_tokens",
        ),
        (
            seen(agent=box(command(1)), traffic=traffic(limit="trial_budget_tokens: spent")),
            ended("resource_limit"),
            "limit of its policy on its model: trial_budget_tokens",
        ),
        (seen(agent=box(timed_out())), ended("timeout", "timeout"), "deadline of 60000 ms"),
        (seen(agent=box(killed(9), oom_kills=1)), ended("oom"), "limit of its policy on memory"),
        (seen(agent=box(command(137), oom_kills=1)), ended("oom"), "memory"),
        (seen(agent=box(command(1), oom_kills=1)), ended("oom"), "memory"),
        (seen(agent=box(command(1), pids_denied=3)), ended("resource_limit"), "pids"),
        (seen(agent=box(command(1), disk_full=True)), ended("resource_limit"), "disk"),
        (
            seen(agent=box(killed(25))),
            ended("resource_limit"),
            "SIGXFSZ; it hit the limit of its policy on file size",
        ),
        (seen(agent=box(command(1))), ended("runner_failed"), "agent exited 1"),
        (seen(agent=box(command(127))), ended("runner_failed"), "exited 127"),
        (seen(agent=box(command(137))), ended("runner_failed"), "no limit was hit"),
        (seen(agent=box(command(124))), ended("runner_failed"), "the program's own"),
        (seen(agent=box(killed(9))), ended("runner_failed"), "killed by SIGKILL"),
        (seen(agent=box(killed(99))), ended("runner_failed"), "killed by signal 99"),
        (
            seen(agent=box(command(), command(2), command(3))),
            ended("runner_failed"),
            "agent's command 2 exited 2",
        ),
        (
            seen(agent=box(command(1)), traffic=traffic(error="script ran out")),
            ended("runner_failed"),
            "ran out",
        ),
        (seen(collected=Collected(limit="more than 9 bytes")), ended("resource_limit"), "more than 9 bytes"),
        (
            seen(collected=Collected(error="more than 100000 members")),
            void("evidence_missing", "completed", "unavailable"),
            "100000",
        ),
        (
            seen(collected=None),
            void("evidence_missing", "completed", "unavailable"),
            "no changes were collected",
        ),
        (
            seen(grader=box(differences=("x",))),
            void("isolation_failed", "completed", "error"),
            "grader: settings",
        ),
        (seen(grader=box(survivors=1)), void("isolation_failed", "completed", "error"), "grader"),
        (seen(grader=box(settled=False)), void("isolation_failed", "completed", "error"), "grader"),
        (seen(measure=box(survivors=1)), void("isolation_failed", "completed", "error"), "measure"),
        (seen(grader=box(error="gone")), void("grader_error", "completed", "error"), "grader: gone"),
        (seen(grader=box(error="gone", settled=False)), void("grader_error", "completed", "error"), "gone"),
        (seen(grader=None), void("grader_error", "completed", "error"), "no report"),
        (seen(grader=box(timed_out())), void("timeout", "completed", "error"), "deadline of 30000 ms"),
        (
            seen(grader=box(killed(9), oom_kills=1)),
            void("grader_error", "completed", "error"),
            "out of memory",
        ),
        (
            seen(grader=box(command(1), oom_kills=1)),
            void("grader_error", "completed", "error"),
            "out of memory",
        ),
        (seen(grader=box(unstarted("E2BIG"))), void("grader_error", "completed", "error"), "E2BIG"),
        (seen(grader=box(command(None))), void("grader_error", "completed", "error"), "did not report"),
        (
            seen(grader=box().model_copy(update={"commands": ()})),
            void("grader_error", "completed", "error"),
            "0 of 1",
        ),
        (seen(grader=box(command(), command())), void("grader_error", "completed", "error"), "2 of 1"),
        (
            seen(grader=box(command(), command(1))),
            void("grader_error", "completed", "error"),
            "command 2 of 1",
        ),
        (seen(grader=box(command(1), pids_denied=1)), scored("verifier_failed"), "grader's limit on pids"),
        (seen(grader=box(command(1), disk_full=True)), scored("verifier_failed"), "grader's limit on disk"),
    ],
)
def test_the_table(observed: Observations, expected: Any, detail: str | None) -> None:
    found = outcome(TASK, observed)
    assert row(found) == expected
    if detail is None:
        assert found.detail is None
    else:
        assert detail in (found.detail or "")


@pytest.mark.parametrize(
    "agent",
    [
        box(oom_kills=1, engine_oom_flag=True),
        box(pids_denied=9),
        box(disk_full=True),
        box(orphans=3),
        box(command(stdout=samples.capture(b"").model_copy(update={"truncated": True}))),
    ],
)
def test_a_counter_alone_decides_nothing(agent: Any) -> None:
    """A child may be killed while its parent exits 0; the engine's own flag may say anything."""
    assert row(outcome(TASK, seen(agent=agent))) == PASSED
    assert row(outcome(TASK, seen(grader=agent))) == PASSED


def test_the_engines_flag_does_not_make_an_own_exit_an_oom() -> None:
    assert row(outcome(TASK, seen(agent=box(command(137), engine_oom_flag=True)))) == ended("runner_failed")


@pytest.mark.parametrize(
    ("observed", "limit"),
    [
        (seen(agent=box(timed_out())), "agent"),
        (seen(agent=box(timed_out(), oom_kills=1)), "agent"),
        (seen(agent=box(killed(9), oom_kills=1, pids_denied=1, disk_full=True)), "memory"),
        (seen(agent=box(command(1), pids_denied=1, disk_full=True)), "pids"),
        (seen(agent=box(command(1), disk_full=True)), "disk"),
        (seen(agent=box(killed(25), oom_kills=1)), "file size"),
        (seen(grader=box(timed_out())), "grader"),
        (seen(grader=box(killed(9), oom_kills=1)), "memory"),
        (seen(agent=box(command(1))), None),
        (seen(collected=Collected(limit="more than 9 bytes")), "workspace changes"),
        (seen(), None),
    ],
)
def test_the_limit_is_named(observed: Observations, limit: str | None) -> None:
    assert outcome(TASK, observed).limit == limit


@pytest.mark.contract("V12", "S18")
@pytest.mark.parametrize(
    "agent", [box(timed_out()), box(killed(9), oom_kills=1), box(command(1)), box(command(1), disk_full=True)]
)
def test_with_grade_incomplete_grading_alone_decides(agent: Any) -> None:
    """Known failure B6: a right answer, left by an agent that then timed out."""
    found = outcome(GRADE_INCOMPLETE, seen(agent=agent))
    assert row(found) == ("failed", "completed", "passed", None, None, "scored")
    assert found.detail is not None
    assert found.detail.startswith("the turn: agent")
    found = outcome(GRADE_INCOMPLETE, seen(agent=agent, grader=box(command(1))))
    assert row(found) == scored("verifier_failed", "failed")
    assert "; the turn: agent" in (found.detail or "")
    found = outcome(GRADE_INCOMPLETE, seen(agent=agent, grader=box(timed_out())))
    assert row(found) == void("timeout", "failed", "error")
    found = outcome(GRADE_INCOMPLETE, seen(agent=agent, collected=Collected(error="x")))
    assert row(found) == void("evidence_missing", "failed", "unavailable")


@pytest.mark.parametrize("agent", [box(), box(command(1))])
@pytest.mark.parametrize("task", [GRADE_INCOMPLETE, NO_CHECKS])
def test_nobody_becomes_void_by_changing_too_much(task: Any, agent: Any) -> None:
    found = outcome(task, seen(agent=agent, collected=Collected(limit="more than 9 bytes"), grader=None))
    assert found.weight.value == "scored"
    assert found.task.value == "failed"


def test_grade_incomplete_has_nothing_to_grade_without_checks() -> None:
    task = samples.task(verify={"grade_incomplete": True})
    assert row(outcome(task, seen(agent=box(timed_out()), grader=None))) == ended("timeout", "timeout")


def test_grade_incomplete_does_not_excuse_what_is_not_the_candidates_doing() -> None:
    for observed, failure in (
        (seen(agent=box(unstarted())), "command_error"),
        (seen(agent=box(timed_out(), survivors=1)), "isolation_failed"),
        (seen(cancelled=True), "cancelled"),
    ):
        found = outcome(GRADE_INCOMPLETE, observed)
        assert found.failure_class is not None
        assert found.failure_class.value == failure


@pytest.mark.parametrize(
    ("observed", "expected"),
    [
        (seen(grader=None), NOTHING),
        (seen(grader=None, collected=None), NOTHING),
        (seen(grader=None, measure=box(command(1))), NOTHING),
        (seen(grader=None, agent=box(command(1))), ended("runner_failed")),
        (
            seen(grader=None, collected=Collected(error="x")),
            void("evidence_missing", "completed", "unavailable"),
        ),
    ],
)
def test_a_task_without_checks_is_not_assessed(observed: Observations, expected: Any) -> None:
    assert row(outcome(NO_CHECKS, observed)) == expected
    measured = samples.task(verify={"measure": "true"})
    assert row(outcome(measured, observed)) == expected


@pytest.mark.contract("S13")
@pytest.mark.parametrize(
    "grader", [box(command(), command()), box(command(1)), box(timed_out()), box(error="gone"), None]
)
def test_a_forbidden_path_stands_whatever_the_graders_say(grader: Any) -> None:
    found = outcome(FORBID, seen(collected=TOUCHED, grader=grader))
    assert row(found) == scored("forbidden_path", kind="contract")
    assert found.detail == "forbidden path changed: tests/a.py"


def test_a_forbidden_path_does_not_stand_above_a_broken_isolation() -> None:
    observed = seen(collected=TOUCHED, grader=box(command(), command(), survivors=1))
    assert row(outcome(FORBID, observed)) == void("isolation_failed", "completed", "error")


def test_several_forbidden_paths_are_counted() -> None:
    changes = tuple(samples.change(f"tests/{n}") for n in range(4))
    found = outcome(FORBID, seen(collected=Collected(changes=changes)))
    assert found.detail == "forbidden path changed: tests/0 and 3 more"


def test_an_allowed_change_passes_and_forbidden_paths_alone_are_a_check() -> None:
    observed = seen(
        collected=Collected(changes=(samples.change("src/a.py"),)), grader=box(command(), command())
    )
    assert row(outcome(FORBID, observed)) == PASSED
    alone = samples.task(verify={"forbid_paths": ("tests/",)})
    assert row(outcome(alone, seen(grader=None))) == PASSED
    assert row(outcome(alone, seen(grader=None, collected=None))) == void(
        "evidence_missing", "completed", "unavailable"
    )


@pytest.mark.contract("S12")
def test_the_first_failing_command_is_named() -> None:
    found = outcome(FORBID, seen(grader=box(command(), command(2))))
    assert row(found) == scored("verifier_failed")
    assert found.detail == "command 2 of 2 exited 2: pytest -q"
    found = outcome(FORBID, seen(grader=box(command())))
    assert row(found) == void("grader_error", "completed", "error")
    assert found.detail == "grader: 1 of 2 commands reported"


def asserting(*assertions: Any, **verify: Any) -> Any:
    return samples.task(verify={"assertions": assertions, **verify})


@pytest.mark.contract("S12", "S18", "S21")
@pytest.mark.parametrize(
    ("assertions", "expected", "detail"),
    [
        ((("latency.wallMs", "lt", 11),), PASSED, None),
        (
            (("latency.wallMs", "lt", 10),),
            scored("assertion_failed"),
            "assertion 1: expected latency.wallMs lt 10, but it is 10",
        ),
        (
            (("cost.usd", "lt", 1),),
            scored("assertion_unresolved"),
            "expected cost.usd lt 1, but it is unmeasured",
        ),
        ((("cost.usd", "neq", 1),), scored("assertion_unresolved"), "unmeasured"),
        ((("no.such", "eq", 1),), scored("assertion_unresolved"), "unmeasured"),
        ((("latency.wallMs", "lt", "x"),), scored("assertion_unresolved"), "is 10, which cannot be compared"),
        (
            (("latency.wallMs", "eq", 10), ("cost.usd", "lt", 1)),
            scored("assertion_unresolved"),
            "assertion 2",
        ),
        ((("latency.wallMs", "eq", 9), ("cost.usd", "lt", 1)), scored("assertion_failed"), "assertion 1"),
        ((("result.pass", "eq", True),), PASSED, None),
        ((("result.failureClass", "eq", "none"),), PASSED, None),
    ],
)
def test_assertions_come_last_and_in_order(assertions: Any, expected: Any, detail: str | None) -> None:
    found = outcome(asserting(*(samples.wants(*a) for a in assertions)), seen(grader=None))
    assert row(found) == expected
    assert (found.detail is None) if detail is None else detail in (found.detail or "")


@pytest.mark.contract("S17")
def test_a_failed_command_is_told_before_a_failed_assertion() -> None:
    task = asserting(samples.wants("latency.wallMs", "lt", 1), commands=("true",))
    assert row(outcome(task, seen(grader=box(command(1))))) == scored("verifier_failed")
    assert row(outcome(task, seen())) == scored("assertion_failed")


@pytest.mark.contract("S14")
@pytest.mark.parametrize(
    "measured", [box(command(1)), box(timed_out()), box(error="gone"), box(unstarted()), None]
)
def test_a_measurement_never_fails_an_item(measured: Any) -> None:
    task = samples.task(verify={"commands": ("true",), "measure": "check"})
    assert row(outcome(task, seen(measure=measured))) == PASSED


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        (box(), PASSED),
        (box(command(1)), scored("assertion_failed")),
        (box(killed(11)), scored("assertion_failed")),
        (box(timed_out()), void("timeout", "completed", "error")),
        (box(error="gone"), void("grader_error", "completed", "error")),
        (box(unstarted()), void("grader_error", "completed", "error")),
        (None, void("grader_error", "completed", "error")),
    ],
)
def test_a_measurement_that_an_assertion_reads_must_have_worked(measured: Any, expected: Any) -> None:
    """Known failure B5: a fault of a grader must not become the candidate's failure."""
    task = asserting(samples.wants("task.solved", "eq", True), measure="check")
    assert row(outcome(task, seen(measure=measured, grader=None))) == expected


def test_an_assertion_on_a_measurement_that_is_not_declared_is_unresolved() -> None:
    task = asserting(samples.wants("task.solved", "eq", True))
    assert row(outcome(task, seen(grader=None))) == scored("assertion_unresolved")


@pytest.mark.parametrize("field", [{"expect": "failed"}, {"expect": "failed", "expect_class": "oom"}])
def test_expectations_play_no_part(field: Any) -> None:
    assert row(outcome(samples.task(**field), seen())) == PASSED


ORDER: list[tuple[dict[str, Any], str]] = [
    ({"cancelled": True}, "cancelled"),
    ({"fault": samples.fault("setup_failed").fault}, "setup_failed"),
    ({"agent": box(timed_out(), differences=("x",))}, "isolation_failed"),
    ({"traffic": traffic(failed_before_first_turn=True)}, "provider_error"),
    ({"agent": box(timed_out())}, "timeout"),
    ({"collected": Collected(changes=TOUCHED.changes, limit="x", error="x")}, "resource_limit"),
    ({"collected": Collected(changes=TOUCHED.changes, error="x")}, "evidence_missing"),
    ({"measure": box(survivors=1)}, "isolation_failed"),
    ({"collected": TOUCHED}, "forbidden_path"),
    ({"grader": box(timed_out())}, "timeout"),
]


@pytest.mark.parametrize(
    ("one", "two", "failure"),
    [(a, b, failure) for (a, failure), (b, _) in itertools.combinations(ORDER, 2) if not set(a) & set(b)],
)
def test_of_two_reasons_the_earlier_row_decides(one: Any, two: Any, failure: str) -> None:
    found = outcome(FORBID, seen(**one, **two))
    assert found.failure_class is not None
    assert found.failure_class.value == failure


def test_a_detail_is_one_short_line_of_printable_text() -> None:
    nasty = "a\nb\x1b[2J\r\u202e" + "x" * 1000
    task = samples.task(verify={"commands": (nasty,)})
    detail = outcome(task, seen(grader=box(command(1)))).detail
    assert detail is not None
    assert len(detail) == 300
    assert detail.isprintable()
    assert detail.startswith("command 1 of 1 exited 1: a b [2J x")
