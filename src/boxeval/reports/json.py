"""The report as JSON: the `Report` record itself, ASCII only."""

from __future__ import annotations

import json
from typing import Any

from boxeval.spec.report import Report


def render(report: Report) -> str:
    """One document that follows `boxeval schema report`. Null is unknown, never zero."""
    return json.dumps(report.model_dump(mode="json"), indent=2, allow_nan=False) + "\n"


def report_schema() -> dict[str, Any]:
    """JSON Schema of what `render` gives."""
    return Report.model_json_schema(mode="serialization")
