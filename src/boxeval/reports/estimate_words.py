"""Figures on k of n trials for people (docs/graders.md says what each is)."""

from __future__ import annotations

from boxeval.receipts.verify import VerifiedRun
from boxeval.reports.words import Fact, number
from boxeval.spec.estimates import Estimates, MeanEstimates
from boxeval.spec.report import Report


def estimate_facts(report: Report, run: VerifiedRun) -> tuple[Fact, ...]:
    """Figures on k of n trials, where a task asks for them by its `k`. The JSON report always has them."""
    if not any(task.k for task in run.plan.tasks):
        return ()
    rows = [
        (f"{row.task}[{row.target}] k={row.estimates.k}", _estimate_words(row.estimates))
        for row in report.rows
    ]
    return (*rows, ("mean over tasks", _estimate_words(report.estimates)))


def _estimate_words(found: Estimates | MeanEstimates) -> str:
    """`n/a` where there are fewer than k scored trials."""
    figures = {
        "pass_rate": found.pass_rate,
        "any_of_k": found.any_of_k,
        "all_of_k": found.all_of_k,
        "pass_at_k": found.pass_at_k,
        "pass_pow_k": found.pass_pow_k,
        "unbiased": found.pass_pow_k_unbiased,
    }
    return ", ".join(f"{name} {_figure(value)}" for name, value in figures.items())


def _figure(value: float | None) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "n/a" if value is None else number(value)
