"""Which formats there are. A format's module is imported only when it is asked for."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from boxeval.receipts.verify import VerifiedRun
    from boxeval.spec.report import Report


class Format(StrEnum):
    """Formats of a report."""

    TEXT = "text"
    JSON = "json"
    MD = "md"
    JUNIT = "junit"
    SWE_JSONL = "swe-jsonl"
    ATIF = "atif"


FORMATS = "|".join(Format)


def render(form: Format, report: Report, run: VerifiedRun) -> str:
    """The report in one format. All of them tell the same numbers."""
    if form is Format.JSON:
        from boxeval.reports import json

        return json.render(report)
    if form is Format.JUNIT:
        from boxeval.reports import junit

        return junit.render(report, run)
    if form is Format.SWE_JSONL:
        from boxeval.reports import swe_jsonl

        return swe_jsonl.render(report, run)
    if form is Format.ATIF:
        from boxeval.reports import atif

        return atif.render(report, run)
    if form is Format.MD:
        from boxeval.reports import md

        return md.render(report, run)
    from boxeval.reports import text

    return text.render(report, run)
