"""The report as Markdown, e.g. for a CI job's summary. What a candidate named or printed stays in code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from boxeval.receipts.verify import VerifiedRun
from boxeval.reports.escape import escape
from boxeval.reports.story import Entry, tell
from boxeval.reports.words import Fact
from boxeval.spec.report import Report


def render(report: Report, run: VerifiedRun) -> str:
    """The whole report; the same story as the text one."""
    story = tell(report, run)
    lines = [f"# {story.verdict}", "", code(story.reason), "", code(story.summary), ""]
    lines += [f"- **Note**: {code(text)}" for text in story.warnings]
    lines += ["", *_table(story.header, story.rows)]
    for section in story.sections:
        lines += ["", f"## {section.title}", ""]
        for entry in section.entries:
            lines += _entry(entry)
    return "\n".join([*lines, "", "## Record", "", *_facts(story.facts, "")]) + "\n"


def code(text: str) -> str:
    """A code span that nothing in the text can leave: one visible line, fences longer than any of its own."""
    shown = escape(text) or " "
    fence = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") or shown.strip() != shown else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _cell(text: str) -> str:
    # A table takes its cells apart before it looks for code.
    return code(text).replace("|", "\\|") if text else ""


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    kept = [n for n in range(len(header)) if any(row[n] for row in rows)]
    lines = [[header[n] for n in kept], ["---"] * len(kept), *([_cell(row[n]) for n in kept] for row in rows)]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def _facts(pairs: Sequence[Fact], indent: str) -> list[str]:
    return [f"{indent}- {name}: {code(value)}" for name, value in pairs]


def _entry(entry: Entry) -> Iterator[str]:
    yield f"- {code(entry.key)}: {code(entry.verdict)}"
    yield from _facts(entry.facts, "  ")
    for excerpt in entry.excerpts:
        fence = "`" * max(
            3, max((len(run) for line in excerpt.lines for run in re.findall("`+", line)), default=0) + 1
        )
        yield f"  - {excerpt.caption}:"
        yield ""
        yield f"    {fence}text"
        yield from (f"    {line}" for line in excerpt.lines)
        yield f"    {fence}"
        yield ""
    if entry.look:
        yield f"  - look: {code(entry.look)}"
