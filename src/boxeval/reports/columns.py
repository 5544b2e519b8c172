"""Plain text in columns."""

from __future__ import annotations

from collections.abc import Sequence

from boxeval.reports.escape import escape
from boxeval.reports.words import Fact


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns padded to their widest cell; a column that is empty in every row is left out."""
    kept = [n for n in range(len(header)) if any(row[n] for row in rows)]
    cells = [[escape(row[n]) for n in kept] for row in (header, *rows)]
    widths = [max(len(row[n]) for row in cells) for n in range(len(kept))]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in cells]


def facts(pairs: Sequence[Fact], indent: str = "") -> list[str]:
    """One line a fact, names padded."""
    width = max((len(name) for name, _ in pairs), default=0)
    return [f"{indent}{name.ljust(width)}  {escape(value)}".rstrip() for name, value in pairs]
