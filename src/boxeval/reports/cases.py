"""Results of case runs for people: one table, figures that are not complete as `unknown` (contract G72)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from boxeval.reports.escape import escape
from boxeval.reports.words import UNKNOWN, number
from boxeval.spec.case_result import CaseOutcome, CaseResult, CaseTrial
from boxeval.spec.case_run import Route

HEAD = ("case", "task", "execution", "grading", "passed", "pass rate", "duration", "tokens in/out", "cost")


def render(results: Sequence[CaseResult]) -> str:
    """The results, one after another, each with its trials and its run."""
    return "\n".join(line for result in results for line in _result(result))


def _result(result: CaseResult) -> Iterable[str]:
    if result.diagnostic is not None:
        yield f"no run: {escape(result.diagnostic.message)} (exit {result.exit_code})"
        return
    yield f"run {escape(result.run_id or '')}: {result.task}, exit {result.exit_code}"
    if result.candidate:
        judge = f"; judge {_route(result.semantic)}" if result.semantic else ""
        yield f"candidate {_route(result.candidate)}{judge}; threshold {result.threshold}"
    if result.condition:
        yield f"condition {result.condition.requested}, applied {result.condition.applied or UNKNOWN}"
    yield from _table([HEAD, *(_row(case) for case in result.cases)])
    for case in result.cases:
        for trial in case.trials:
            yield from _trial(trial)
    yield f"evidence: {escape(result.evidence_path or '')}"
    if result.checkpoint:
        yield escape(result.checkpoint)


def _route(route: Route) -> str:
    parts = (route.host, route.model, route.effort)
    return escape(" ".join(part for part in parts if part))


def _row(case: CaseOutcome) -> tuple[str, ...]:
    return (
        escape(case.case_id),
        str(case.task),
        str(case.execution),
        str(case.grading),
        f"{case.passed}/{case.planned}",
        UNKNOWN if case.pass_rate is None else f"{case.pass_rate:.3g}",
        UNKNOWN if case.duration_ms is None else f"{case.duration_ms / 1000:.1f} s",
        f"{_known(case.input_tokens)}/{_known(case.output_tokens)}",
        number(case.cost_usd, "USD"),
    )


def _trial(trial: CaseTrial) -> Iterable[str]:
    why = f": {escape(trial.detail)}" if trial.detail else ""
    yield f"  trial {trial.trial}: {trial.task} ({trial.execution}, {trial.grading}){why}"
    for check in trial.checks:
        reason = f": {escape(check.reason)}" if check.reason else ""
        yield f"    {escape(check.id)} [{escape(check.grader)}] {escape(check.status)}{reason}"


def _known(value: int | None) -> str:
    return UNKNOWN if value is None else str(value)


def _table(rows: Sequence[tuple[str, ...]]) -> Iterable[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
