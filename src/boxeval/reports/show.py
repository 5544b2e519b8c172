"""One run or one trial in detail, as plain text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from boxeval.receipts.blobs import BlobStore
from boxeval.receipts.verify import VerifiedRun
from boxeval.reports.check_words import checks_shown
from boxeval.reports.columns import facts, table
from boxeval.reports.escape import escape
from boxeval.reports.excerpts import change_words, command_words, enforcements_of, output
from boxeval.reports.extension import extension_lines
from boxeval.reports.text import render
from boxeval.reports.words import UNKNOWN, Fact, cause, duration, kind_of, kind_of_line, number, size
from boxeval.rules.boxes import boxes_of
from boxeval.rules.cause import failure_cause
from boxeval.spec.box import BoxResult
from boxeval.spec.egress import EgressTraffic
from boxeval.spec.report import Report
from boxeval.spec.trial import Collected, Enforcement, FixtureNotes, ModelTraffic, Patch, PutBack, Trial
from boxeval.verdicts.aggregate import as_expected

SHOWN_CHANGES = 100
STEPS = ("stage", "run", "settle", "collect", "enforce", "grade", "seal")
"""A sealed record has its keys in alphabetical order."""


def render_run(run: VerifiedRun, report: Report) -> str:
    """The text report, then every trial in one line and what the run was made with."""
    rows = [
        (line.key, str(kind_of_line(line)), cause(line.outcome), duration(line.wall_ms), line.trial_id)
        for line in report.trials
    ]
    rows += [(key, "missing", "", "", "") for key in report.missing]
    images: list[Fact] = [
        (name, image.image_id or f"missing: {image.fault or UNKNOWN}")
        for name, image in report.images.items()
    ]
    parts = [
        render(report, run).rstrip("\n"),
        "",
        *table(("trial", "verdict", "class", "time", "id"), rows),
        "",
        "images",
        *facts([(escape(name), value) for name, value in images], "  "),
        *facts((("checkpoint", run.checkpoint or "none"),)),
    ]
    return "\n".join(parts) + "\n"


def render_trial(run: VerifiedRun, trial: Trial) -> str:
    """All that was seen of one attempt at a trial."""
    task = next(t for t in run.plan.tasks if (t.task, t.target) == (trial.task, trial.target))
    outcome, seen = trial.outcome, trial.observations
    because = failure_cause(seen, outcome)
    kind = kind_of(outcome, task.expect, as_expected(trial, task))
    lines = [
        f"{escape(trial.task)}[{escape(trial.target)}]#{trial.repeat}  {kind}",
        *facts(
            [
                ("why", outcome.detail or "every check holds"),
                ("execution", outcome.execution.value),
                ("grading", outcome.grading.value),
                ("task", outcome.task.value),
                ("class", cause(outcome) or "none"),
                ("cause", because.kind.value if because else "none"),
                ("weight", outcome.weight.value),
                ("attempt", str(trial.attempt)),
                ("started", trial.started_at),
                ("wall time", duration(trial.wall_ms)),
                ("id", trial.trial_id),
                ("identity", trial.identity),
                ("fixture", seen.fixture or UNKNOWN),
                *_notes(seen.fixture_notes),
            ],
            "  ",
        ),
        "",
        *table(("step", "ms"), [(step, str(trial.steps_ms[step])) for step in _in_order(trial.steps_ms)]),
    ]
    if seen.fault:
        lines += ["", f"fault before the candidate ran: {escape(seen.fault.detail)}"]
    lines += checks_shown(seen, run.blobs)
    for role, box in boxes_of(trial.observations):
        lines += ["", *_box(role, box, run.blobs)]
    if seen.collected:
        lines += ["", *_changes(seen.collected), *_patch(seen.collected.patch)]
    for name, enforced in enforcements_of(trial):
        lines += ["", *_enforcement(name, enforced)]
    if seen.traffic:
        lines += ["", *_traffic(seen.traffic)]
    if seen.extension:
        lines += ["", *extension_lines(seen.extension)]
    if seen.egress:
        lines += ["", *_egress(seen.egress)]
    return "\n".join([*lines, "", *_metrics(trial)]) + "\n"


def _metrics(trial: Trial) -> Iterator[str]:
    """What was measured; of what was not, only how much that is, since most metrics are null in most trials."""
    measured = [(escape(name), _value(value)) for name, value in trial.metrics.items() if value is not None]
    yield "metrics"
    yield from facts(measured, "  ")
    if unmeasured := len(trial.metrics) - len(measured):
        yield f"  and {unmeasured} that are unknown: `boxeval show RUN TRIAL --json` has all"


def _notes(notes: FixtureNotes | None) -> Iterator[Fact]:
    if notes and notes.submodules:
        yield "left empty", "submodules " + ", ".join(map(escape, notes.submodules))
    if notes and notes.lfs_pointers:
        yield "pointers only", "Git LFS files " + ", ".join(map(escape, notes.lfs_pointers))


def _in_order(steps: Iterable[str]) -> list[str]:
    return sorted(steps, key=lambda step: STEPS.index(step) if step in STEPS else len(STEPS))


def _box(role: str, box: BoxResult, blobs: BlobStore) -> Iterator[str]:
    yield f"{role} box, image {escape(box.image_id)}"
    counters = {
        "survivors of the kill": box.survivors,
        "orphans": box.orphans,
        "killed for memory": box.oom_kills,
        "forks refused": box.pids_denied,
    }
    notes = [f"{count} {name}" for name, count in counters.items() if count]
    notes += ["never seen to settle"] if not box.settled else []
    notes += ["workspace full"] if box.disk_full else []
    notes += [f"settings differ: {difference}" for difference in box.differences]
    notes += [f"engine fault: {box.error}"] if box.error else []
    yield f"  cpu {duration(box.cpu_ms)}, memory at most {size(box.max_rss_kib * 1024)}"
    yield from (f"  ! {escape(note)}" for note in notes)
    for one in box.injected:
        how = "injected" if one.delivered else f"not delivered ({one.detail})"
        yield f"  fault {one.number} {escape(how)} after {one.at_ms} ms"
    for count, command in enumerate(box.commands, start=1):
        yield f"  command {count} {escape(command_words(command))}"
        for excerpt in output(f"command {count}", command, blobs, limit=40):
            yield f"    {excerpt.caption}:"
            yield from (f"      | {line}" for line in excerpt.lines)


def _changes(collected: Collected) -> Iterator[str]:
    if why := collected.limit or collected.error:
        yield f"changes could not be collected: {escape(why)}"
        return
    yield f"changes: {len(collected.changes)}"
    for change in collected.changes[:SHOWN_CHANGES]:
        link = f" -> {change.link}" if change.link is not None else ""
        bytes_ = f", {size(change.size_bytes)}" if change.size_bytes is not None else ""
        mode = f", mode {change.mode:04o}" if change.mode is not None else ""
        yield f"  {escape(change_words(change) + link)}{mode}{bytes_}"
    if len(collected.changes) > SHOWN_CHANGES:
        yield f"  and {len(collected.changes) - SHOWN_CHANGES} more: `boxeval show RUN TRIAL --json` has all"


def _patch(patch: Patch | None) -> Iterator[str]:
    if patch is None:
        return
    name = f"{size(patch.size_bytes)}, blob {patch.sha256}" if patch.sha256 else "not available"
    yield f"patch: {name}" + ("" if patch.complete or not patch.sha256 else ", incomplete")
    yield from (f"  ! {escape(reason)}" for reason in patch.reasons)


def _enforcement(name: str, enforced: Enforcement) -> Iterator[str]:
    if verdict := enforced.boundary:
        allow = "the whole workspace" if verdict.allow is None else ", ".join(verdict.allow) or "nothing"
        yield f"write boundary of {escape(name)}: {verdict.status.value}"
        yield from facts([("allowed", allow), ("digest", verdict.digest)], "  ")
        yield from _put_back("violation", verdict.violations)
        for left in verdict.unrecoverable[:SHOWN_CHANGES]:
            yield f"  ! {escape(left.path)} could not be put back: {escape(left.reason)}"
    if enforced.restored:
        yield f"protected paths restored after {escape(name)}: {len(enforced.restored)}"
        yield from _put_back("restored", enforced.restored)


def _put_back(word: str, paths: tuple[PutBack, ...]) -> Iterator[str]:
    for path in paths[:SHOWN_CHANGES]:
        yield f"  {word}: {escape(path.path)} ({path.kind})"
    if len(paths) > SHOWN_CHANGES:
        yield f"  and {len(paths) - SHOWN_CHANGES} more: `boxeval show RUN TRIAL --json` has all"


def _traffic(traffic: ModelTraffic) -> Iterator[str]:
    yield "model traffic"
    yield from facts(
        [
            ("requests", number(traffic.requests)),
            (
                "tokens",
                f"{number(traffic.input_tokens)} in, {number(traffic.output_tokens)} out{_lacking(traffic)}",
            ),
            ("cost", number(traffic.cost_usd, "USD")),
            ("time", duration(traffic.model_ms)),
            ("tool calls", number(traffic.tool_calls)),
            ("fault", traffic.error or "none"),
            *([("limit", traffic.limit)] if traffic.limit else []),
        ],
        "  ",
    )


def _lacking(traffic: ModelTraffic) -> str:
    count = traffic.unmeasured_requests
    return f", at least: {count} answers were cut before they told theirs" if count else ""


def _egress(egress: EgressTraffic) -> Iterator[str]:
    yield "other hosts"
    for host in egress.hosts:
        refused = f", refused {host.refused} times: {escape(host.reason or '')}" if host.refused else ""
        moved = f"{number(host.sent_bytes)} bytes out, {number(host.received_bytes)} in"
        yield f"  {escape(host.host)}:{host.port}: reached {host.reached} times, {moved}{refused}"
    if not egress.hosts:
        yield "  none was asked for"
    if egress.left_out:
        yield f"  and {egress.left_out} attempts to reach more"


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return number(value) if value is None or isinstance(value, int | float) else str(value)
