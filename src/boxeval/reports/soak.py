"""A soak as plain text."""

from __future__ import annotations

from collections import Counter

from boxeval.reports.columns import table
from boxeval.reports.escape import escape
from boxeval.reports.words import duration
from boxeval.spec.soak import Slope, SoakReport

_NAMES = {
    "memory_kib": "controller memory, KiB",
    "descriptors": "controller descriptors",
    "threads": "controller threads",
    "disk_kib": "disk, KiB",
    "engine_objects": "engine objects",
}


def render_soak(report: SoakReport) -> str:
    """Rounds by suite, slopes, and every run that did not end as it should."""
    bad = [one for one in report.rounds if one.code]
    rounds = len(report.samples)
    codes = {one.code for one in bad}
    # As `boxeval run` says it, where 1 beats 3.
    answer = "RED" if 1 in codes else "INCOMPLETE" if codes or not report.rounds else "GOOD"
    lines = [
        f"{answer}: {rounds} round{'' if rounds == 1 else 's'} in {duration(report.elapsed_ms)}, "
        f"{len(report.rounds)} runs, {sum(one.trials for one in report.rounds)} trials",
        "",
        *table(("suite", "runs", "not good"), _by_suite(report)),
    ]
    if report.slopes:
        rows = [(_NAMES[name], *_slope(slope)) for name, slope in report.slopes.items()]
        lines += ["", *table(("per hour, after the first round", "from", "to", "slope", "95 % +-"), rows)]
    if bad:
        lines += ["", "Not good"]
        lines += [
            f"  round {one.round}: {escape(one.suite)}, {escape(one.kept or one.run_id)}: {escape(one.why)}"
            for one in bad
        ]
    return "\n".join(lines) + "\n"


def _by_suite(report: SoakReport) -> list[tuple[str, ...]]:
    runs = Counter(one.suite for one in report.rounds)
    bad = Counter(one.suite for one in report.rounds if one.code)
    return [(escape(suite), str(count), str(bad[suite])) for suite, count in runs.items()]


def _slope(slope: Slope) -> tuple[str, ...]:
    return (
        f"{slope.first:,}",
        f"{slope.last:,}",
        "too few" if slope.per_hour is None else f"{slope.per_hour:+,.1f}",
        "" if slope.margin is None else f"{slope.margin:,.1f}",
    )
