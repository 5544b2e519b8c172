"""The checks of a trial for people: which failed, what was expected and what was received."""

from __future__ import annotations

from collections.abc import Iterator

from boxeval.receipts.blobs import BlobStore
from boxeval.reports.columns import facts, table
from boxeval.reports.escape import escape, escape_lines
from boxeval.reports.words import Fact, size
from boxeval.spec.graded import CheckSeen, CheckStatus, GitHeadSeen
from boxeval.spec.trial import Observations, Trial

TOLD = 5
"""Checks that a report tells in full; `boxeval show` has all."""
MESSAGE_LINES, LINE_CHARACTERS = 20, 200
MESSAGE_BYTES = 16 * 1024


def check_facts(trial: Trial) -> Iterator[Fact]:
    """A line on all checks, and one on each of the first that did not pass."""
    checks = trial.observations.graded
    bad = [check for check in checks if check.status is not CheckStatus.PASSED]
    if not bad:
        return
    yield "checks", _summary(checks)
    for check in bad[:TOLD]:
        yield f"check {check.id}", f"{check.status.value}: {_words(check)}"


def _summary(checks: tuple[CheckSeen, ...]) -> str:
    found = {status: [check.id for check in checks if check.status is status] for status in CheckStatus}
    parts = [f"{len(found.pop(CheckStatus.PASSED))} of {len(checks)} passed"]
    parts += [f"{status.value}: {', '.join(names)}" for status, names in found.items() if names]
    return "; ".join(parts)


def _words(check: CheckSeen) -> str:
    text = check.reason or "no reason is told"
    text += f"; expected {check.expected}" if check.expected is not None else ""
    return text + (f", received {check.received}" if check.received is not None else "")


def checks_shown(seen: Observations, blobs: BlobStore) -> Iterator[str]:
    """Message, checks and HEAD of a trial in lines that are safe to print."""
    if seen.message:
        reason = f": {seen.message.reason}" if seen.message.reason else f", {size(seen.message.size_bytes)}"
        yield ""
        yield f"final message: {seen.message.status.value}{escape(reason)}"
        if seen.checks and seen.message.sha256:
            yield from (f"  | {line}" for line in _head(blobs.get(seen.message.sha256)))
    if seen.checks:
        rows = [(check.id, check.grader, check.status.value, _note(check)) for check in seen.checks]
        yield ""
        yield from table(("check", "grader", "status", "note"), rows)
    if seen.git_head:
        yield ""
        yield from _git_head(seen.git_head)


def _note(check: CheckSeen) -> str:
    if check.status is CheckStatus.PASSED:
        return "" if check.score is None else f"score {check.score:g}"
    return _words(check)


def _git_head(seen: GitHeadSeen) -> Iterator[str]:
    ancestor = {True: "yes", False: "no", None: "unknown"}[seen.base_is_ancestor]
    pairs = [("before", seen.base or "unknown"), ("after", seen.current or "unknown")]
    yield "HEAD"
    yield from facts([*pairs, ("base is an ancestor", ancestor), ("fault", seen.error or "none")], "  ")


def _head(text: bytes) -> list[str]:
    lines = escape_lines(text[:MESSAGE_BYTES])
    shown = [f"{line[:LINE_CHARACTERS]}…" if len(line) > LINE_CHARACTERS else line for line in lines]
    more = len(shown) > MESSAGE_LINES or len(text) > MESSAGE_BYTES
    return [*shown[:MESSAGE_LINES], *(["…"] if more else [])]
