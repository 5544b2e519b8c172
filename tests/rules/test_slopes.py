"""Slopes of a soak, against arithmetic by hand."""

from __future__ import annotations

import pytest

from boxeval.reports.soak import render_soak
from boxeval.rules.slopes import slopes
from boxeval.spec.soak import SoakReport, SoakRound, SoakSample

HALF_HOUR = 1_800_000


def sample(number: int, at_ms: int, memory_kib: int) -> SoakSample:
    return SoakSample(
        round=number,
        at_ms=at_ms,
        memory_kib=memory_kib,
        descriptors=9,
        threads=1,
        disk_kib=10,
        engine_objects=2,
    )


def test_the_first_round_warms_up_and_the_rest_make_a_line() -> None:
    samples = [sample(1, 0, 5), *(sample(n + 1, n * HALF_HOUR, 100 + 50 * n) for n in range(1, 5))]
    found = slopes(samples)
    assert (found["memory_kib"].first, found["memory_kib"].last) == (150, 300)
    assert found["memory_kib"].per_hour == pytest.approx(100)
    assert found["memory_kib"].margin == pytest.approx(0)
    assert (found["descriptors"].per_hour, found["descriptors"].margin) == (0, 0)


def test_scatter_widens_the_margin() -> None:
    # Hours 0, 1, 2 and values 0, 3, 0: the line is flat at 1, the squares left over are 1 + 4 + 1 = 6, the hours'
    # spread is 2; so the margin is 1.96 * sqrt(6 / 1 / 2) = 1.96 * sqrt(3).
    samples = [sample(1, 0, 9)]
    samples += [sample(n, (n - 2) * 2 * HALF_HOUR, value) for n, value in ((2, 0), (3, 3), (4, 0))]
    found = slopes(samples)["memory_kib"]
    assert found.per_hour == pytest.approx(0)
    assert found.margin == pytest.approx(3.395, abs=0.001)


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_too_few_samples_have_no_slope(count: int) -> None:
    found = slopes([sample(n + 1, n * HALF_HOUR, n) for n in range(count)])
    assert all(slope.per_hour is None and slope.margin is None for slope in found.values())
    assert bool(found) == bool(count)


def test_a_report_names_what_was_not_good_and_shows_no_control_characters() -> None:
    rounds = (
        SoakRound(suite="load", round=1, run_id="r1", trials=10, code=0, why="as expected"),
        SoakRound(
            suite="load",
            round=2,
            run_id="r2",
            trials=10,
            code=1,
            why="1 of 10\x1b[2J",
            kept="/data/soak/2-load",
        ),
    )
    report = SoakReport(
        boxeval="0.1.0",
        started_at="2025-01-01T12:00:00.000Z",
        hours=1,
        elapsed_ms=3_600_000,
        rounds=rounds,
        samples=(sample(1, 0, 5),),
        slopes=slopes([sample(1, 0, 5)]),
    )
    text = render_soak(report)
    assert text.startswith("RED: 1 round in ")
    assert "2 runs, 20 trials" in text
    assert "round 2: load, /data/soak/2-load: 1 of 10\\x1b[2J" in text
    assert "too few" in text
    assert SoakReport.model_validate_json(report.model_dump_json()) == report


@pytest.mark.parametrize(
    ("codes", "told"), [((0, 0), "GOOD"), ((0, 3), "INCOMPLETE"), ((3, 1), "RED"), ((), "INCOMPLETE")]
)
def test_a_report_begins_with_the_answer_that_its_exit_code_gives(codes: tuple[int, ...], told: str) -> None:
    rounds = tuple(
        SoakRound(suite="load", round=1, run_id=f"r{n}", trials=1, code=code, why="why")
        for n, code in enumerate(codes)
    )
    text = render_soak(
        SoakReport(
            boxeval="0.1.0",
            started_at="2025-01-01T12:00:00.000Z",
            hours=1,
            elapsed_ms=1,
            rounds=rounds,
            samples=(sample(1, 0, 5),),
            slopes={},
        )
    )
    assert text.startswith(f"{told}: ")
