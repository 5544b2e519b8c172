"""What a report for people says, before any format: text and Markdown are two renderings of one story.

Every value here may hold anything; excerpts alone are safe already. The renderers escape.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from boxeval.receipts.verify import VerifiedRun
from boxeval.reports.check_words import check_facts
from boxeval.reports.estimate_words import estimate_facts
from boxeval.reports.excerpts import Excerpt, boundary_words, changes, failing_output
from boxeval.reports.words import (
    Fact,
    Kind,
    attempt_words,
    cause,
    duration,
    expected,
    fault,
    is_incomplete,
    kind_counts,
    kind_of_line,
    number,
    percent,
    plural,
    received,
)
from boxeval.settings import load_settings
from boxeval.spec.report import Counts, Report, TrialLine
from boxeval.spec.trial import Trial
from boxeval.verdicts.aggregate import conclusion, unmet

DETAILED = 20
"""More red trials than this are listed without their output: nobody reads a thousand tails."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One trial that a reader should look at."""

    key: str
    verdict: str
    facts: tuple[Fact, ...] = ()
    excerpts: tuple[Excerpt, ...] = ()
    look: str | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """Trials of one kind."""

    title: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Story:
    """A whole report. `warnings` must not be overlooked; `facts` are for the record."""

    verdict: str
    reason: str
    summary: str
    warnings: tuple[str, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    sections: tuple[Section, ...]
    facts: tuple[Fact, ...]


def tell(report: Report, run: VerifiedRun) -> Story:
    """Put a report into words."""
    code, reason = conclusion(report)
    trials = {(trial.trial_id, trial.attempt): trial for trial in run.trials}
    by_kind: dict[Kind, list[TrialLine]] = {}
    for line in report.trials:
        by_kind.setdefault(kind_of_line(line), []).append(line)
    red = [line for line in report.trials if kind_of_line(line).is_red]
    sections = (
        Section(
            "Not as expected", tuple(_red(line, trials, n < DETAILED, run) for n, line in enumerate(red))
        ),
        Section(
            "Void: no verdict, and not the candidate's doing", _voids(by_kind.get(Kind.VOID, ()), trials, run)
        ),
        Section(
            "Missing: planned, but without a receipt", tuple(Entry(key, "missing") for key in report.missing)
        ),
        Section("Failed as intended", tuple(_brief(line) for line in by_kind.get(Kind.AS_INTENDED, ()))),
        Section(
            "Not counted: no checks are declared", tuple(_brief(x) for x in by_kind.get(Kind.NOT_COUNTED, ()))
        ),
        Section(
            "Tried again: earlier attempts were void",
            tuple(_tried(line) for line in report.trials if line.others),
        ),
        Section("Failure thresholds that were met", _thresholds(report)),
    )
    header, rows = _table(report)
    return Story(
        verdict={0: "GOOD", 1: "RED"}.get(code, "INCOMPLETE"),
        reason=reason.removeprefix("incomplete: "),
        summary=_summary(report),
        warnings=_warnings(report, code),
        header=header,
        rows=rows,
        sections=tuple(section for section in sections if section.entries),
        facts=_facts(report, run),
    )


def look(run: VerifiedRun, line: TrialLine) -> str:
    """The command that shows a trial, with the run's path if its id alone would not find it."""
    directory = run.blobs.directory.parent.absolute()
    is_found = directory == load_settings().runs_dir / run.plan.run_id
    return f"boxeval show {run.plan.run_id if is_found else shlex.quote(str(directory))} {line.trial_id}"


def _summary(report: Report) -> str:
    kinds = [f"{count} {kind}" for kind, count in kind_counts(report).items()]
    if report.totals.missing:
        kinds.append(f"{report.totals.missing} missing")
    rate = report.totals.pass_rate
    rated = "" if rate is None else f"; pass rate {percent(rate)}"
    return f"{plural(report.totals.trials, 'trial')}: {', '.join(kinds) or 'none ran'}{rated}"


def _warnings(report: Report, code: int) -> tuple[str, ...]:
    found = []
    if code != 3 and is_incomplete(report):
        found.append(f"INCOMPLETE as well: {report.totals.void} void, {report.totals.missing} missing")
    if report.interrupted_by:
        found.append(f"interrupted by {report.interrupted_by}")
    found += report.problems
    found += [f"image {name}: {image.fault}" for name, image in report.images.items() if image.fault]
    if not report.hermetic:
        found.append(
            "not hermetic: ran with the ambient environment (BOXEVAL_HERMETIC=0); never counts as a baseline"
        )
    if report.selection:
        chosen = ", ".join(f"{name} {value}" for name, value in report.selection.items())
        found.append(f"a selection only ({chosen}): {plural(report.left_out, 'trial')} of the suite left out")
    return tuple(found)


def _red(line: TrialLine, trials: dict[tuple[str, int], Trial], detailed: bool, run: VerifiedRun) -> Entry:
    trial = trials[line.trial_id, line.attempt]
    facts: list[Fact] = [*_why(line), ("expected", expected(line)), ("received", received(line))]
    if detailed and (changed := changes(trial)):
        facts.append(("changed", changed))
    if put_back := boundary_words(trial):
        facts.append(("put back", put_back))
    if line.outcome.failure_class == line.expect_class:
        facts += _unmet(trial, run)
    if detailed:
        facts += check_facts(trial)
    output = failing_output(trial, run.blobs) if detailed else []
    return Entry(line.key, _verdict(line), tuple(facts), tuple(output), look(run, line))


def _unmet(trial: Trial, run: VerifiedRun) -> list[Fact]:
    """Assertions that keep a failure of the right class from being the expected one."""
    task = next(t for t in run.plan.tasks if (t.task, t.target) == (trial.task, trial.target))
    return [
        (
            "does not hold",
            f"{a.metric} {a.op.value} {_scalar(a.value)}: it is {_scalar(trial.metrics.get(a.metric))}",
        )
        for a in unmet(trial, task)
    ]


def _voids(
    lines: Iterable[TrialLine], trials: dict[tuple[str, int], Trial], run: VerifiedRun
) -> tuple[Entry, ...]:
    entries = []
    for count, line in enumerate(lines):
        trial, detailed = trials[line.trial_id, line.attempt], count < DETAILED
        output = failing_output(trial, run.blobs) if detailed else []
        checks = tuple(check_facts(trial)) if detailed else ()
        facts = (*_why(line), ("fault of", fault(line.outcome)), *checks)
        entries.append(Entry(line.key, _verdict(line), facts, tuple(output), look(run, line)))
    return tuple(entries)


def _brief(line: TrialLine) -> Entry:
    return Entry(line.key, _verdict(line), _why(line))


def _tried(line: TrialLine) -> Entry:
    facts = [(f"attempt {one.attempt}", attempt_words(one)) for one in line.others]
    return Entry(line.key, f"attempt {line.attempt} decides: {_verdict(line)}", tuple(facts))


def _verdict(line: TrialLine) -> str:
    why = cause(line.outcome)
    return f"{kind_of_line(line)}: {why}" if why else str(kind_of_line(line))


def _why(line: TrialLine) -> tuple[Fact, ...]:
    title: tuple[Fact, ...] = (("title", line.title),) if line.title else ()
    return (*title, ("why", line.outcome.detail)) if line.outcome.detail else title


def _thresholds(report: Report) -> tuple[Entry, ...]:
    return tuple(
        Entry(
            f"{fired.condition.metric} {fired.condition.op.value} {fired.condition.value}",
            f"met by {plural(len(fired.fired_by), 'trial')}",
            (
                ("trials", ", ".join(fired.fired_by)),
                *((("unmeasured in", ", ".join(fired.unresolved)),) if fired.unresolved else ()),
            ),
        )
        for fired in report.thresholds
        if fired.fired_by
    )


def _table(report: Report) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    collected = sorted({name for row in report.rows for name in row.collected})
    header = ("task", "target", "expect", "passed", "failed", "void", "missing", "verdict", *collected)
    rows = tuple(
        (
            row.task,
            row.target,
            row.expect or "passed",
            *(f"{n}/{row.counts.trials}" for n in (row.counts.passed, row.counts.failed)),
            *(str(n) if n else "" for n in (row.counts.void, row.counts.missing)),
            _row_verdict(row.counts),
            *(", ".join(_scalar(value) for value in row.collected.get(name, ())) for name in collected),
        )
        for row in report.rows
    )
    return header, rows


def _row_verdict(counts: Counts) -> str:
    if counts.unexpected:
        return "RED"
    if counts.void or counts.missing:
        return "incomplete"
    return "as expected" if counts.as_expected else "not counted"


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else number(value)  # type: ignore[arg-type]


def _facts(report: Report, run: VerifiedRun) -> tuple[Fact, ...]:
    made = report.provenance
    tokens, cost = report.tokens, report.cost
    measured = f"measured in {tokens.measured_runs} of {tokens.runs} trials"
    return (
        ("suite", f"{report.suite.id} ({report.suite.title}), sha256 {report.suite.sha256[:16]}"),
        ("run", report.run_id),
        *((("resumed", ", ".join(report.resumed_at)),) if report.resumed_at else ()),
        ("time", f"{duration(report.wall_time_ms)}" if report.wall_time_ms is not None else "unknown"),
        *estimate_facts(report, run),
        ("tokens", f"{number(tokens.input)} in, {number(tokens.output)} out; {measured}"),
        (
            "cost",
            f"{number(cost.known_usd, 'USD')}; {cost.unknown_runs} of {tokens.runs} trials cost unknown",
        ),
        ("engine", f"{made.engine} {made.engine_version}, {made.storage_driver}, kernel {made.kernel}"),
        ("signed by", f"{report.key_label or 'a key without a label'} ({report.keyid[:16]})"),
    )
