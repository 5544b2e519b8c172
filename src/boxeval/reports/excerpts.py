"""Short pieces of a trial's evidence: the end of a command's output, the changed files."""

from __future__ import annotations

from dataclasses import dataclass

from boxeval.receipts.blobs import BlobStore
from boxeval.reports.escape import escape_lines
from boxeval.reports.words import size
from boxeval.rules.boxes import boxes_of
from boxeval.rules.endings import describe, ended_badly
from boxeval.spec.box import Capture, CommandResult
from boxeval.spec.graded import CheckStatus
from boxeval.spec.trial import BoundaryStatus, Change, ChangeKind, Enforcement, Trial

LINES = 20
CHARACTERS = 200
CHANGES = 5

_SIGNS = {ChangeKind.CREATED: "+", ChangeKind.MODIFIED: "~", ChangeKind.DELETED: "-"}


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Safe lines from the end of one output stream."""

    caption: str
    lines: tuple[str, ...]


def enforcements_of(trial: Trial) -> list[tuple[str, Enforcement]]:
    """What was put back after each turn, by the turn's name."""
    seen = trial.observations
    turns = [("agent", seen.enforced), *((f"step {step.id}", step.enforced) for step in seen.steps)]
    return [(name, enforced) for name, enforced in turns if enforced]


def boundary_words(trial: Trial) -> str | None:
    """Verdicts on write boundaries and restored files, for one line; None if there was nothing to put back."""
    found = []
    for name, enforced in enforcements_of(trial):
        if (verdict := enforced.boundary) and verdict.status is not BoundaryStatus.CLEAN:
            put_back = f"{len(verdict.rolled_back)} of {len(verdict.violations)} violations undone"
            found.append(f"{name}: {verdict.status.value}, {put_back}")
        if enforced.restored:
            found.append(f"{name}: {len(enforced.restored)} protected paths restored")
    return "; ".join(found) or None


def failing_output(trial: Trial, blobs: BlobStore) -> list[Excerpt]:
    """The end of what failed first printed: the commands', a check's, else the candidate's. At most 20 lines."""
    seen = trial.observations
    if seen.grader and (bad := ended_badly(seen.grader)):
        return output(f"grader command {bad[0]}", bad[1], blobs, LINES)
    for check in seen.checks:
        if check.status is not CheckStatus.PASSED and check.box and check.box.commands:
            return output(f"check {check.id}", check.box.commands[0], blobs, LINES)
    # Their exit codes alone say nothing.
    others = {"measure", "HEAD", *(f"check {check.id}" for check in seen.checks)}
    for role, box in reversed(boxes_of(trial.observations)):
        if role not in others and (bad := ended_badly(box)):
            return output(f"{role} command {bad[0]}", bad[1], blobs, LINES)
    return []


def output(name: str, command: CommandResult, blobs: BlobStore, limit: int) -> list[Excerpt]:
    """The end of both streams of a command. They share `limit` lines, as each has need."""
    streams = {"stdout": command.stdout, "stderr": command.stderr}
    lines = {stream: _lines(capture, blobs) for stream, capture in streams.items()}
    spare = max(limit // 2 - min(len(shown) for shown, _ in lines.values()), 0)
    found = []
    for stream, (shown, cut) in lines.items():
        if not shown:
            continue
        kept = shown[-(limit // 2 + spare) :]
        caption = f"{stream} of {name}"
        if cut or len(kept) < len(shown):
            caption += f", the last {len(kept)} lines"
        if streams[stream].truncated:
            caption += f" (of {size(streams[stream].size_bytes)} only head and tail were kept)"
        found.append(Excerpt(caption, tuple(kept)))
    return found


def _lines(capture: Capture, blobs: BlobStore) -> tuple[list[str], bool]:
    """Safe lines from the end of a stream, and whether there is more before them."""
    if capture.kept is None:
        return [], False
    kept = blobs.get(capture.kept)
    # A flood without a newline must not cost time: nothing before the last bytes can be shown.
    tail = kept[-(LINES * CHARACTERS * 4) :]
    lines = [f"{line[:CHARACTERS]}…" if len(line) > CHARACTERS else line for line in escape_lines(tail)]
    return lines, len(tail) < len(kept)


def change_words(change: Change) -> str:
    """`+ path`, `~ path`, `- path`, with what is not a plain file named. The text is not escaped yet."""
    what = change.kind or change.was
    note = f" ({what.value})" if what and what.value != "file" else ""
    return f"{_SIGNS[change.change]} {change.path}{note}"


def changes(trial: Trial) -> str | None:
    """The first few changed paths, for one line; None if nothing was collected."""
    collected = trial.observations.collected
    if collected is None or collected.error is not None:
        return None
    shown = ", ".join(change_words(change) for change in collected.changes[:CHANGES])
    more = len(collected.changes) - CHANGES
    return (f"{shown}, and {more} more" if more > 0 else shown) or "nothing"


def command_words(command: CommandResult) -> str:
    """How a command ended, and how long it took."""
    ending = "passed its deadline and was killed" if command.timed_out else describe(command)
    return f"{ending} after {command.wall_ms} ms"
