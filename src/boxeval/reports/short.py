"""The short JSON report of `boxeval run --report` (S51)."""

from __future__ import annotations

import json

from boxeval.receipts.ledger import utc_now
from boxeval.receipts.verify import VerifiedRun
from boxeval.reports.words import kind_of_line, received
from boxeval.spec.report import Report, TrialLine


def render_short(report: Report, run: VerifiedRun) -> str:
    """One case a planned trial. `passed` means that it ended as its suite expects, as in other formats."""
    cases = [_case(line) for line in report.trials]
    cases += [_missing(trial.task) for trial in run.plan.trials if trial.key in report.missing]
    document = {
        "generated_at": utc_now(),
        "passed": sum(case["passed"] is True for case in cases),
        "total": len(cases),
        "tokens_in": report.tokens.input,
        "tokens_out": report.tokens.output,
        "cases": cases,
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _case(line: TrialLine) -> dict[str, object]:
    good = line.as_expected is True
    return {
        "task_id": line.task,
        "passed": good,
        "verify_exit": line.metrics.get("verifier.exitCode"),
        "tokens_in": line.metrics.get("tokens.input"),
        "tokens_out": line.metrics.get("tokens.output"),
        "duration_ms": line.wall_ms,
        "error": None if good else f"{kind_of_line(line)}: {line.outcome.detail or received(line)}",
    }


def _missing(task: str) -> dict[str, object]:
    unknown = dict.fromkeys(("verify_exit", "tokens_in", "tokens_out", "duration_ms"))
    return {"task_id": task, "passed": False, **unknown, "error": "missing: no receipt"}
