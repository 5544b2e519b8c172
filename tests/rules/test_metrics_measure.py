from __future__ import annotations

import math
from typing import Any

import pytest

import run_samples as samples
from boxeval.rules.metrics import holds, measure
from boxeval.spec.agent_record import AgentRecord, ClaimedUsage, ContextIndex, TurnEnd, TurnRecord
from boxeval.spec.base import Scalar
from boxeval.spec.chaos import Fault, FaultSignal
from boxeval.spec.metrics import METRICS
from boxeval.spec.suite import Assertion
from boxeval.spec.trial import Collected, EntryKind, Observations, Patch, StreamFacts

TASK = samples.task()


def metric(name: str, observed: Observations, task: Any = TASK) -> Scalar:
    return measure(task, observed, 777)[name]


AGENT = AgentRecord(
    host="boxeval.host.codex",
    turns=(
        TurnRecord(
            turn="agent",
            end=TurnEnd.COMPLETED,
            usage=ClaimedUsage(input=200, output=40, cost_usd=0.5),
            context=ContextIndex(indexed_files=3, coverage=0.5, structural_hash="h", digest_tokens=9),
        ),
    ),
)


@pytest.mark.contract("S21", "V15")
def test_an_agent_s_own_usage_stays_apart_and_is_whole_or_nothing() -> None:
    def measured(*usages: ClaimedUsage | None) -> list[object]:
        turns = tuple(TurnRecord(turn=str(n), end=TurnEnd.COMPLETED, usage=u) for n, u in enumerate(usages))
        record = AgentRecord(host="boxeval.host.codex", turns=turns)
        found = measure(TASK, samples.seen(traffic=samples.traffic(), agent_record=record), 1)
        return [
            found[f"receiptUsage.{name}"] for name in ("measured", "receiptCount", "totalTokens", "costUsd")
        ]

    one, free = ClaimedUsage(input=200, output=40, cost_usd=0.5), ClaimedUsage(input=7, output=3)
    assert measured(one, one) == [True, 2, 480, 1.0]
    assert measured(one, free) == [True, 2, 250, None]
    assert measured(one, None) == [False, None, None, None]
    assert measured() == [False, None, None, None]
    # Good claims that together are more than a receipt can carry.
    assert measured(ClaimedUsage(input=2**53 - 1, output=1)) == [False, None, None, None]
    rich = ClaimedUsage(input=1, output=1, cost_usd=2.0**53 - 1)
    assert measured(rich, rich) == [False, None, None, None]


@pytest.mark.contract("S31")
def test_the_registry_and_the_measurement_name_the_same_metrics_and_types() -> None:
    collected = Collected(patch=samples.patch())
    stream = StreamFacts(
        cumulative_snapshots=0, usage_double_counted=False, segment_usage_matches_messages=True
    )
    traffic = samples.traffic(cost_usd=0.5, failed_tool_calls=0, stream=stream)
    fault = Fault(signal=FaultSignal.SIGCONT, target="agent", at="start")
    task = samples.task(verify=TASK.verify, writes=(), faults=(fault,))
    enforced = samples.bounded(task, collected)
    observed = samples.seen(
        traffic=traffic,
        measure=samples.box(),
        collected=collected,
        enforced=enforced,
        journal=samples.journal(),
        checks=(samples.checked("regex"),),
        agent_record=AGENT,
    )
    found = measure(task, observed, 1)
    assert set(found) == set(METRICS)
    for name, value in found.items():
        assert METRICS[name].accepts(value), name
    assert set(measure(TASK, samples.fault("setup_failed"), 1)) == set(found)


@pytest.mark.contract("S21", "S22", "S23")
def test_model_metrics_come_from_the_wire() -> None:
    observed = samples.seen(
        traffic=samples.traffic(input_tokens=200, output_tokens=40, cost_usd=0.25, model_ms=90, tool_calls=3)
    )
    found = measure(TASK, observed, 777)
    assert (found["tokens.input"], found["tokens.output"], found["tokens.total"]) == (200, 40, 240)
    assert found["tokens.measured"] is True
    assert (found["latency.wallMs"], found["latency.modelMs"]) == (777, 90)
    assert (found["cost.usd"], found["tools.totalCalls"]) == (0.25, 3)


@pytest.mark.contract("S21")
def test_tokens_of_an_answer_that_was_cut_are_unmeasured_and_not_too_few() -> None:
    found = measure(TASK, samples.seen(traffic=samples.traffic(unmeasured_requests=1)), 777)
    assert found["tokens.measured"] is False
    for name in ("input", "output", "total", "cacheRead", "cacheWrite"):
        assert found[f"tokens.{name}"] is None


@pytest.mark.contract("S21", "S23", "S28")
def test_caches_failures_and_streams_come_from_the_wire() -> None:
    stream = StreamFacts(
        cumulative_snapshots=3, usage_double_counted=True, segment_usage_matches_messages=False
    )
    traffic = samples.traffic(
        cache_read_tokens=50, cache_write_tokens=7, failed_tool_calls=2, tool_calls=3, stream=stream
    )
    found = measure(TASK, samples.seen(traffic=traffic), 777)
    assert (found["tokens.cacheRead"], found["tokens.cacheWrite"]) == (50, 7)
    assert (found["tools.totalCalls"], found["tools.failed"]) == (3, 2)
    assert found["stream.cumulativeSnapshots"] == 3
    assert found["stream.usageDoubleCounted"] is True
    assert found["stream.segmentUsageMatchesMessages"] is False


@pytest.mark.contract("S21")
def test_without_a_model_nothing_is_zero() -> None:
    found = measure(TASK, samples.seen(traffic=None), 777)
    assert found["tokens.measured"] is False
    for name in (
        "tokens.input",
        "tokens.output",
        "tokens.total",
        "cost.usd",
        "latency.modelMs",
        "tools.totalCalls",
    ):
        assert found[name] is None
    assert metric("cost.usd", samples.seen(traffic=samples.traffic(cost_usd=None))) is None


CHANGES = (
    samples.change("src/a.py", "modified", size_bytes=10, was=EntryKind.FILE),
    samples.change("src/new", kind=EntryKind.DIRECTORY),
    samples.change("src/new/b.py", size_bytes=5),
    samples.change("old.py", "deleted", None, was=EntryKind.FILE),
    samples.change("old", "deleted", None, was=EntryKind.DIRECTORY),
    samples.change("link", kind=EntryKind.SYMLINK, link="a", size_bytes=1),
    samples.change("tests/test_a.py", "modified", size_bytes=7, was=EntryKind.FILE),
    samples.change("conftest.py", size_bytes=0),
    samples.change("dir", "modified", EntryKind.DIRECTORY, was=EntryKind.FILE),
    samples.change(".git/index", "modified", size_bytes=9, was=EntryKind.FILE),
    samples.change("vendor/.git/HEAD", size_bytes=9),
)


@pytest.mark.contract("S24")
def test_patch_metrics_by_hand() -> None:
    """Files: a.py, b.py, old.py, link, test_a.py, conftest.py, what `dir` replaced; not what is in a `.git`."""
    observed = samples.seen(collected=Collected(changes=CHANGES, patch=samples.patch(b"x" * 22)))
    assert metric("patch.filesChanged", observed) == 7
    assert metric("patch.testFilesModified", observed) == 2
    assert metric("patch.bytes", observed) == 22
    unavailable = Patch(sha256=None, complete=False, reasons=("too large",))
    assert metric("patch.bytes", samples.seen(collected=Collected(patch=unavailable))) is None
    for collected in (None, Collected(error="gone"), Collected(limit="more than 9 bytes")):
        assert metric("patch.filesChanged", samples.seen(collected=collected)) is None
    assert metric("patch.filesChanged", samples.seen()) == 0


@pytest.mark.parametrize(
    ("path", "is_test"),
    [
        ("tests/data.bin", True),
        ("a/test/b", True),
        ("src/__tests__/x.js", True),
        ("spec/x.rb", True),
        ("test_a.py", True),
        ("a_test.go", True),
        ("a.test.ts", True),
        ("a.spec.ts", True),
        ("conftest.py", True),
        ("contest.py", False),
        ("latest/a.py", False),
        ("attest_a.py", False),
        ("tests", False),
        ("src/test.py", False),
    ],
)
def test_what_counts_as_a_test_file(path: str, is_test: bool) -> None:
    observed = samples.seen(collected=Collected(changes=(samples.change(path),)))
    assert metric("patch.testFilesModified", observed) == int(is_test)


@pytest.mark.contract("S14", "S25")
@pytest.mark.parametrize(
    ("box", "exit_code", "solved"),
    [
        (samples.box(), 0, True),
        (samples.box(samples.command(3)), 3, False),
        (samples.box(samples.command(), samples.command(5)), 5, False),
        (samples.box(samples.killed(11)), 139, False),
        (samples.box(samples.timed_out()), None, None),
        (samples.box(samples.unstarted()), None, None),
        (samples.box(error="engine gone"), None, None),
        (samples.box().model_copy(update={"commands": ()}), None, None),
        (None, None, None),
    ],
)
def test_exit_codes(box: Any, exit_code: int | None, solved: bool | None) -> None:
    assert metric("verifier.exitCode", samples.seen(grader=box)) == exit_code
    assert metric("task.exitCode", samples.seen(measure=box)) == exit_code
    assert metric("task.solved", samples.seen(measure=box)) is solved


@pytest.mark.contract("S27")
def test_orphans_are_counted_or_unknown() -> None:
    assert metric("process.orphanedChildren", samples.seen(agent=samples.box(orphans=2))) == 2
    assert metric("process.orphanedChildren", samples.seen()) == 0
    assert metric("process.orphanedChildren", samples.seen(agent=None)) is None
    assert metric("process.orphanedChildren", samples.seen(agent=samples.box(error="gone"))) is None


@pytest.mark.contract("S25")
@pytest.mark.parametrize(
    ("observed", "passed", "failure"),
    [
        (samples.seen(), True, "none"),
        (samples.seen(grader=samples.box(samples.command(1))), False, "verifier_failed"),
        (samples.seen(agent=samples.box(samples.command(1))), False, "runner_failed"),
        (samples.fault("setup_failed"), None, None),
        (samples.seen(grader=samples.box(samples.timed_out())), None, None),
    ],
)
def test_the_result_by_everything_but_assertions(
    observed: Observations, passed: bool | None, failure: str | None
) -> None:
    task = samples.task(
        verify={"commands": ("true",), "assertions": (samples.wants("result.pass", "eq", False),)}
    )
    assert metric("result.pass", observed, task) is passed
    assert metric("result.failureClass", observed, task) == failure


def test_a_task_without_checks_has_no_result() -> None:
    assert metric("result.pass", samples.seen(), samples.task(verify={})) is None


@pytest.mark.contract("S12")
@pytest.mark.parametrize(
    ("value", "op", "wanted", "answer"),
    [
        (1, "lt", 2, True),
        (2, "lt", 2, False),
        (2, "lte", 2, True),
        (3, "lte", 2, False),
        (3, "gt", 2, True),
        (2, "gt", 2, False),
        (2, "gte", 2, True),
        (1, "gte", 2, False),
        (1, "lt", 1.5, True),
        (2, "eq", 2, True),
        (2, "eq", 2.0, True),
        (2, "eq", 3, False),
        (2, "neq", 3, True),
        (2, "neq", 2, False),
        ("a", "eq", "a", True),
        ("a", "neq", "b", True),
        (True, "eq", True, True),
        (True, "neq", False, True),
        (True, "eq", 1, False),
        (1, "eq", True, False),
        (0, "neq", False, True),
        ("1", "eq", 1, False),
        ("1", "neq", 1, True),
        ("", "eq", False, False),
        ("2", "gt", 1, None),
        (2, "gt", "1", None),
        (True, "gt", 0, None),
        (1, "lt", True, None),
        ("a", "lt", "b", None),
        (None, "eq", 0, None),
        (None, "neq", 0, None),
        (None, "neq", "x", None),
        (None, "lt", 0, None),
        (math.nan, "eq", 1, None),
        (math.nan, "neq", 1, None),
        (math.inf, "gt", 1, None),
    ],
)
def test_assertions(value: Scalar, op: str, wanted: Any, answer: bool | None) -> None:
    assert holds(samples.wants("m", op, wanted), value) is answer


def test_a_wanted_value_that_is_no_number_never_disarms_an_assertion() -> None:
    """Known failure H6: a threshold of NaN compares false with everything."""
    for wanted in (math.nan, math.inf):
        assertion = Assertion.model_construct(metric="m", op=samples.wants("m", "lt", 1).op, value=wanted)
        assert holds(assertion, 1) is None
