"""What an extension said of a trial, as plain text."""

from __future__ import annotations

from collections.abc import Iterator

from boxeval.reports.columns import table
from boxeval.reports.escape import escape
from boxeval.reports.words import UNKNOWN
from boxeval.spec.extension_use import ExtensionSeen


def extension_lines(seen: ExtensionSeen) -> Iterator[str]:
    """Who it is, then a line for each check, metric and outcome."""
    who = seen.negotiated
    name = f"{who.id} {who.version}, {who.protocol}" if who else "that did not say who it is"
    yield f"extension {escape(name)}"
    if seen.changed:
        yield "  ! its files changed while it was asked"
    rows = [("check", check.id, check.status.value, check.reason or "") for check in seen.checks]
    rows += [
        ("metric", metric.id, UNKNOWN if metric.value is None else str(metric.value), metric.unit)
        for metric in seen.metrics
    ]
    rows += [("outcome", one.id, one.status, one.detail or "") for one in seen.domain_outcomes]
    if seen.recommendation:
        rows.append(("verdict", "recommended", seen.recommendation, ""))
    yield from (f"  {line}" for line in table(("", "id", "value", "detail"), rows))
