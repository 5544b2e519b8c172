from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import run_samples as samples
from boxeval.receipts.keys import SigningKey
from boxeval.receipts.ledger import Ledger
from boxeval.receipts.trust import Trust
from boxeval.receipts.verify import verify
from boxeval.spec.plan import Plan
from boxeval.spec.report import Report
from boxeval.spec.trial import Observations
from boxeval.verdicts.aggregate import aggregate, conclusion, exit_code
from run_samples import box, command, seen, timed_out, traffic, wants

KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
TRUST = Trust((KEY.trusted("test"),))
PASS, FAIL, VOID = seen(), seen(grader=box(command(1))), seen(grader=box(timed_out()))
NO_CHECKS = samples.task("idle", verify={})


def report(
    directory: Path, plan: Plan, observed: list[Observations | None], *, interrupted_by: str | None = None
) -> Report:
    """The report of a run whose trials, in plan order, were seen like this; None is missing."""
    ledger = Ledger.create(directory / "run", plan, KEY, now=lambda: samples.NOON)
    for place, one in zip(plan.trials, observed, strict=True):
        if one is not None:
            ledger.append(samples.trial(plan.task_of(place), one, place.repeat))
    ledger.close(interrupted_by)
    return aggregate(verify(directory / "run", TRUST))


def test_only_a_verified_run_is_counted() -> None:
    with pytest.raises(TypeError, match="VerifiedRun"):
        aggregate(samples.plan(samples.task()))  # type: ignore[arg-type]


@pytest.mark.contract("P24")
def test_void_and_missing_trials_stand_beside_the_rate(tmp_path: Path) -> None:
    found = report(tmp_path, samples.plan(samples.task(), repeats=5), [PASS, PASS, FAIL, VOID, None])
    totals = found.totals
    assert (totals.trials, totals.passed, totals.failed, totals.void, totals.missing) == (5, 2, 1, 1, 1)
    assert totals.pass_rate == pytest.approx(2 / 3)
    assert (totals.as_expected, totals.unexpected) == (2, 1)
    assert found.missing == ("fix[base]#5",)
    assert not found.complete
    (row,) = found.rows
    assert row.counts == totals
    assert exit_code(found) == 1


@pytest.mark.contract("G72")
@pytest.mark.parametrize("observed", [[VOID, VOID], [None, None], [seen(cancelled=True), None]])
def test_without_a_scored_trial_there_is_no_rate(tmp_path: Path, observed: list[Any]) -> None:
    found = report(tmp_path, samples.plan(samples.task(), repeats=2), observed)
    assert found.totals.pass_rate is None
    assert exit_code(found) == 3


def test_expected_failures_are_counted_apart(tmp_path: Path) -> None:
    tasks = (
        samples.task("good"),
        samples.task("honest", expect="failed"),
        samples.task("cheat", expect="failed", expect_class="verifier_failed"),
    )
    found = report(tmp_path, samples.plan(*tasks), [PASS, FAIL, FAIL])
    assert found.totals.pass_rate == 1.0
    assert (found.totals.passed, found.totals.failed, found.totals.as_expected) == (1, 2, 3)
    assert [row.counts.pass_rate for row in found.rows] == [1.0, None, None]
    assert [line.as_expected for line in found.trials] == [True, True, True]
    assert conclusion(found) == (0, "every scored trial ended as expected")


@pytest.mark.parametrize(
    ("expect", "expect_class", "observed", "met", "code"),
    [
        (None, None, PASS, True, 0),
        (None, None, FAIL, False, 1),
        ("passed", None, PASS, True, 0),
        ("passed", None, FAIL, False, 1),
        ("failed", None, FAIL, True, 0),
        ("failed", None, PASS, False, 1),
        ("failed", "verifier_failed", FAIL, True, 0),
        ("failed", "forbidden_path", FAIL, False, 1),
        ("failed", None, VOID, None, 3),
        ("failed", "timeout", VOID, None, 3),
        (None, None, VOID, None, 3),
    ],
)
def test_expectations(
    tmp_path: Path, expect: Any, expect_class: str | None, observed: Observations, met: bool | None, code: int
) -> None:
    task = samples.task(expect=expect, expect_class=expect_class)
    found = report(tmp_path, samples.plan(task), [observed])
    assert found.trials[0].as_expected is met
    assert exit_code(found) == code


@pytest.mark.contract("V33")
def test_a_run_that_assessed_nothing_is_no_success(tmp_path: Path) -> None:
    found = report(tmp_path, samples.plan(NO_CHECKS), [seen(grader=None)])
    assert (found.totals.not_counted, found.totals.pass_rate) == (1, None)
    assert conclusion(found) == (1, "passed-empty: nothing was assessed")


def test_an_interrupted_run_is_incomplete_unless_something_failed(tmp_path: Path) -> None:
    found = report(tmp_path, samples.plan(samples.task()), [PASS], interrupted_by="SIGINT")
    assert found.interrupted_by == "SIGINT"
    assert exit_code(found) == 3
    failed = report(tmp_path / "2", samples.plan(samples.task()), [FAIL], interrupted_by="SIGINT")
    assert exit_code(failed) == 1


def test_a_run_without_its_checkpoint_is_incomplete(tmp_path: Path) -> None:
    report(tmp_path, samples.plan(samples.task()), [PASS])
    (tmp_path / "run" / "checkpoint").unlink()
    found = aggregate(verify(tmp_path / "run", TRUST))
    assert found.problems
    assert exit_code(found) == 3


@pytest.mark.contract("G72", "V15")
def test_tokens_and_cost_are_known_sums_and_unknown_counts(tmp_path: Path) -> None:
    plan = samples.plan(samples.task(), repeats=3)
    found = report(
        tmp_path,
        plan,
        [
            seen(traffic=traffic(input_tokens=10, output_tokens=1, cost_usd=0.25)),
            seen(traffic=traffic(input_tokens=20, output_tokens=2)),
            seen(),
        ],
    )
    tokens, cost = found.tokens, found.cost
    assert (tokens.measured_runs, tokens.runs) == (2, 3)
    assert (tokens.input, tokens.output, tokens.total) == (30, 3, 33)
    assert (cost.known_usd, cost.known_runs, cost.unknown_runs) == (0.25, 1, 2)
    assert found.trials_ms == 3 * 1234
    none = report(tmp_path / "2", plan, [seen(), seen(), seen()])
    assert (none.tokens.measured_runs, none.tokens.input, none.tokens.total) == (0, None, None)
    assert (none.cost.known_usd, none.cost.unknown_runs) == (None, 3)


@pytest.mark.contract("S16")
def test_thresholds_name_who_fired_them_and_fail_closed(tmp_path: Path) -> None:
    plan = samples.plan(
        samples.task(),
        repeats=3,
        thresholds=(
            wants("tokens.total", "gt", 100),
            wants("latency.wallMs", "gt", 9999),
            wants("cost.usd", "gt", 1),
        ),
    )
    low, high = (seen(traffic=traffic(input_tokens=n, output_tokens=0, cost_usd=0.5)) for n in (10, 200))
    found = report(tmp_path, plan, [low, high, seen()])
    fired = [(t.fired_by, t.unresolved) for t in found.thresholds]
    assert fired == [
        (("fix[base]#2", "fix[base]#3"), ("fix[base]#3",)),
        ((), ()),
        (("fix[base]#3",), ("fix[base]#3",)),
    ]
    assert found.totals.unexpected == 0
    assert conclusion(found) == (1, "2 of 3 failure thresholds were met")


def test_a_threshold_asks_scored_trials_only(tmp_path: Path) -> None:
    plan = samples.plan(samples.task(), thresholds=(wants("cost.usd", "gt", 1),))
    found = report(tmp_path, plan, [VOID])
    assert found.thresholds[0].fired_by == ()
    assert exit_code(found) == 3


def test_a_failure_beats_what_is_missing(tmp_path: Path) -> None:
    found = report(tmp_path, samples.plan(samples.task(), repeats=3), [FAIL, VOID, None])
    assert exit_code(found) == 1


def test_rows_are_by_task_and_target_and_show_what_the_task_collects(tmp_path: Path) -> None:
    a = samples.task("a", "x", collect=("latency.wallMs", "cost.usd"))
    b, c = samples.task("a", "y"), samples.task("b", "x")
    found = report(tmp_path, samples.plan(a, b, c, repeats=2), [PASS, FAIL, None, PASS, PASS, None])
    assert [(row.task, row.target) for row in found.rows] == [("a", "x"), ("a", "y"), ("b", "x")]
    assert [row.counts.trials for row in found.rows] == [2, 2, 2]
    assert [row.counts.pass_rate for row in found.rows] == [1.0, 0.5, None]
    assert [row.counts.missing for row in found.rows] == [0, 0, 2]
    assert found.rows[0].collected == {"latency.wallMs": (1234, 1234), "cost.usd": (None, None)}
    assert [line.key for line in found.trials] == ["a[x]#1", "a[y]#1", "a[x]#2", "a[y]#2"]


def test_lines_are_in_plan_order_whatever_order_they_were_sealed_in(tmp_path: Path) -> None:
    plan = samples.plan(samples.task(), repeats=3)
    ledger = Ledger.create(tmp_path / "run", plan, KEY, now=lambda: samples.NOON)
    for repeat in (3, 1, 2):
        ledger.append(samples.trial(plan.tasks[0], PASS, repeat))
    ledger.close()
    assert [line.repeat for line in aggregate(verify(tmp_path / "run", TRUST)).trials] == [1, 2, 3]


@pytest.mark.contract("V8")
def test_the_earliest_scored_attempt_decides(tmp_path: Path) -> None:
    """Known failures H3 and H4: an infra error then a failure then a pass is one sample, and a failure."""
    plan = samples.plan(samples.task())
    ledger = Ledger.create(tmp_path / "run", plan, KEY, now=lambda: samples.NOON)
    for attempt, observed in enumerate((VOID, FAIL, PASS), start=1):
        ledger.append(samples.trial(plan.tasks[0], observed, 1, attempt=attempt))
    ledger.close()
    found = aggregate(verify(tmp_path / "run", TRUST))
    (line,) = found.trials
    assert line.attempt == 2
    assert (found.totals.trials, found.totals.failed) == (1, 1)


def test_a_line_says_where_to_look(tmp_path: Path) -> None:
    plan = samples.plan(samples.task())
    ledger = Ledger.create(tmp_path / "run", plan, KEY, now=lambda: samples.NOON)
    kept = ledger.blobs.put(b"1 failed")
    failing = seen(grader=box(command(1, stdout=samples.capture(b"1 failed", kept))))
    ledger.append(samples.trial(plan.tasks[0], failing, 1))
    checkpoint = ledger.close()
    found = aggregate(verify(tmp_path / "run", TRUST))
    (line,) = found.trials
    assert [(e.name, e.sha256) for e in line.evidence] == [("grader 1 stdout", kept)]
    assert line.look == "boxeval show run-1 fix-base-1"
    assert line.outcome.detail == "command 1 of 1 exited 1: true"
    assert (found.checkpoint, found.keyid, found.key_label) == (checkpoint, KEY.keyid, "test")


def test_wall_time_is_from_opening_to_closing_or_unknown(tmp_path: Path) -> None:
    times = iter(["2025-01-01T00:00:00.000Z", "2025-01-01T00:01:00.250Z"])
    plan = samples.plan(samples.task())
    ledger = Ledger.create(tmp_path / "run", plan, KEY, now=lambda: next(times))
    assert aggregate(verify(tmp_path / "run", TRUST)).wall_time_ms is None
    ledger.close()
    assert aggregate(verify(tmp_path / "run", TRUST)).wall_time_ms == 60_250


def test_a_report_is_plain_json_both_ways(tmp_path: Path) -> None:
    found = report(tmp_path, samples.plan(samples.task(), repeats=2), [PASS, None])
    text = found.model_dump_json()
    assert '"passRate":1.0' in text
    assert Report.model_validate_json(text) == found


@pytest.mark.parametrize(
    ("expect_class", "value", "met"),
    [
        # The grader failed with exit code 1: an assertion on that is about the machinery, and counts.
        ("verifier_failed", 1, True),
        ("verifier_failed", 0, False),
        # Without a class, or with one that assertions give, they are what fails.
        (None, 0, True),
    ],
)
def test_an_expected_failure_must_hold_its_assertions(
    tmp_path: Path, expect_class: str | None, value: int, met: bool
) -> None:
    verify = {"commands": ("true",), "assertions": (wants("verifier.exitCode", "eq", value),)}
    task = samples.task(expect="failed", expect_class=expect_class, verify=verify)
    found = report(tmp_path, samples.plan(task), [FAIL])
    assert found.trials[0].as_expected is met
    assert exit_code(found) == (0 if met else 1)


def test_an_expected_assertion_failure_needs_no_assertion_to_hold(tmp_path: Path) -> None:
    verify = {"assertions": (wants("verifier.exitCode", "eq", 7),)}
    task = samples.task(expect="failed", expect_class="assertion_unresolved", verify=verify)
    found = report(tmp_path, samples.plan(task), [seen(grader=None)])
    assert found.trials[0].as_expected is True
