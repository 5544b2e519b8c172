"""The report for a terminal or a log: plain text, nothing but visible characters."""

from __future__ import annotations

from collections.abc import Iterator

from boxeval.receipts.verify import VerifiedRun
from boxeval.reports.columns import facts, table
from boxeval.reports.escape import escape
from boxeval.reports.story import Entry, tell
from boxeval.reports.words import plural
from boxeval.spec.report import Report


def render(report: Report, run: VerifiedRun) -> str:
    """The whole report; a red one starts with what a person needs to know first."""
    story = tell(report, run)
    lines = [f"{story.verdict}: {story.reason}", story.summary, *(f"! {text}" for text in story.warnings), ""]
    lines = [escape(line) for line in lines]
    lines += table(story.header, story.rows)
    for section in story.sections:
        lines += ["", f"{section.title}", ""]
        for entry in section.entries:
            lines += _entry(entry)
        if not lines[-1]:
            lines.pop()
    return "\n".join([*lines, "", *facts(story.facts)]) + "\n"


def _entry(entry: Entry) -> Iterator[str]:
    yield f"  {escape(entry.key)}  {escape(entry.verdict)}"
    yield from facts(entry.facts, "    ")
    for excerpt in entry.excerpts:
        yield f"    {excerpt.caption}:"
        yield from (f"      | {line}" for line in excerpt.lines)
    if entry.look:
        yield f"    {escape(entry.look)}"
        yield ""


def render_verified(run: VerifiedRun) -> str:
    """What verification found, for `boxeval verify`."""
    state = "GOOD: nothing was changed" if run.complete else "INCOMPLETE: what is there was not changed"
    key = f"{run.key_label or 'no label'} ({run.keyid[:16]})"
    lines = [
        state,
        *(f"! {escape(problem)}" for problem in run.problems),
        *(f"note: {escape(note)}" for note in run.notes),
        *facts(
            (
                ("run", run.plan.run_id),
                ("receipts", f"{len(run.trials)}, for {plural(len(run.plan.trials), 'planned trial')}"),
                ("key", key),
                ("opened", run.opened_at),
                *((("resumed", ", ".join(run.resumed_at)),) if run.resumed_at else ()),
                ("closed", run.closed_at or "never"),
                *((("interrupted by", run.interrupted_by),) if run.interrupted_by else ()),
                ("checkpoint", run.checkpoint or "none"),
            )
        ),
    ]
    return "\n".join(lines) + "\n"
