"""The cause of a failure by precedence, from what the controller saw (V13)."""

from __future__ import annotations

from typing import Any

import pytest

import run_samples as samples
from boxeval.rules.cause import failure_cause
from boxeval.rules.metrics import measure
from boxeval.rules.verdict import decide
from boxeval.spec.trial import Collected, Observations

FORBIDDEN = {"commands": ("true",), "forbid_paths": ("secret",)}
CHANGED = Collected(changes=(samples.change("secret"),))
FAILED, LATE = samples.box(samples.command(1)), samples.box(samples.timed_out())
MODEL = samples.traffic(error="script_exhausted: used up")


def cause(observed: Observations, **task: Any) -> tuple[str, str] | None:
    planned = samples.task(**task)
    found = failure_cause(observed, decide(planned, observed, measure(planned, observed, 1)))
    return (found.kind.value, found.evidence) if found else None


@pytest.mark.contract("V13")
@pytest.mark.parametrize(
    ("observed", "task", "kind"),
    [
        (samples.seen(), {}, None),
        (samples.seen(), {"verify": {}}, None),
        (samples.seen(collected=CHANGED, traffic=MODEL), {"verify": FORBIDDEN}, "contract"),
        (samples.fault("setup_failed"), {}, "pre_turn_infra"),
        (samples.fault("command_error"), {}, "pre_turn_infra"),
        (
            samples.seen(traffic=samples.traffic(error="x", failed_before_first_turn=True)),
            {},
            "pre_turn_infra",
        ),
        (samples.seen(agent=samples.box(samples.command(2)), traffic=MODEL), {}, "api_error"),
        (samples.seen(agent=samples.box(samples.timed_out()), traffic=MODEL), {}, "api_error"),
        (samples.seen(agent=samples.box(samples.timed_out())), {}, "session_timeout"),
        (samples.seen(grader=FAILED, traffic=samples.traffic(refused=True)), {}, "refusal"),
        (
            samples.seen(collected=CHANGED, traffic=samples.traffic(refused=True)),
            {"verify": FORBIDDEN},
            "contract",
        ),
        (samples.seen(grader=FAILED, traffic=samples.traffic(refused=True, error="x")), {}, "api_error"),
        (
            samples.seen(grader=samples.box(samples.timed_out()), traffic=samples.traffic(refused=True)),
            {},
            "observer_timeout",
        ),
        (samples.seen(traffic=samples.traffic(refused=True)), {}, None),
        (samples.seen(agent=LATE, traffic=samples.traffic(silent_ms=120_000)), {}, "provider_stall"),
        (samples.seen(agent=LATE, traffic=samples.traffic(silent_ms=119_999)), {}, "session_timeout"),
        (samples.seen(agent=LATE, traffic=samples.traffic(silent_ms=120_000, refused=True)), {}, "refusal"),
        (samples.seen(agent=FAILED, traffic=samples.traffic(silent_ms=120_000)), {}, "provider_stall"),
        # It got over that, and failed by what it did.
        (samples.seen(grader=FAILED, traffic=samples.traffic(silent_ms=120_000)), {}, "assertion"),
        (samples.seen(grader=LATE, traffic=samples.traffic(silent_ms=120_000)), {}, "observer_timeout"),
        (samples.seen(grader=samples.box(samples.timed_out())), {}, "observer_timeout"),
        (samples.seen(grader=samples.box(samples.command(1))), {}, "assertion"),
        (samples.seen(agent=samples.box(samples.command(1))), {}, "assertion"),
        (samples.seen(grader=samples.box(error="engine")), {}, "unknown"),
        (samples.seen(cancelled=True), {}, "unknown"),
    ],
)
def test_the_first_that_applies_is_the_cause(observed: Observations, task: Any, kind: str | None) -> None:
    found = cause(observed, **task)
    assert (found[0] if found else None) == kind


def test_the_evidence_is_one_short_line() -> None:
    found = cause(samples.seen(agent=samples.box(samples.command(2)), traffic=MODEL))
    assert found == ("api_error", "script_exhausted: used up")
    assert cause(samples.seen(grader=FAILED, traffic=samples.traffic(refused=True))) == (
        "refusal",
        "the last of 2 answers of the model declined",
    )
    assert cause(samples.seen(agent=LATE, traffic=samples.traffic(silent_ms=130_000))) == (
        "provider_stall",
        "a request waited 130000 ms for the model, and nothing came",
    )
    long = samples.fault("setup_failed", "x\n" * 400)
    found = cause(long)
    assert found is not None
    assert len(found[1]) == 300
    assert found[1].isprintable()
