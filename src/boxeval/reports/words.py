"""The words that every format shares, so that no two of them tell a trial's story differently."""

from __future__ import annotations

from enum import StrEnum
from math import floor, log10

from boxeval.spec.outcome import FailureClass, Outcome, TaskState, Weight
from boxeval.spec.report import Attempt, Report, TrialLine

UNKNOWN = "unknown"
Fact = tuple[str, str]
"""A name and its value, for one line of a report."""


class Kind(StrEnum):
    """How a trial ended, as a reader sorts it."""

    PASSED = "passed"
    AS_INTENDED = "failed as intended"
    FAILED = "failed"
    WRONG_CLASS = "failed otherwise than intended"
    WRONG_PASS = "passed, but was to fail"  # noqa: S105  no password
    VOID = "void"
    NOT_COUNTED = "not counted"

    @property
    def is_red(self) -> bool:
        """A scored outcome that is not the expected one."""
        return self in {Kind.FAILED, Kind.WRONG_CLASS, Kind.WRONG_PASS}


def kind_of(outcome: Outcome, expect: str | None, as_expected: bool | None) -> Kind:
    """Sort a trial. `as_expected` is what `verdicts` decided: None unless it is scored."""
    if outcome.weight is Weight.VOID:
        return Kind.VOID
    if outcome.weight is Weight.NOT_COUNTED:
        return Kind.NOT_COUNTED
    passed = outcome.task is TaskState.PASSED
    if as_expected:
        return Kind.PASSED if passed else Kind.AS_INTENDED
    if passed:
        return Kind.WRONG_PASS
    return Kind.WRONG_CLASS if expect == "failed" else Kind.FAILED


def kind_of_line(line: TrialLine) -> Kind:
    """Sort a line of a report."""
    return kind_of(line.outcome, line.expect, line.as_expected)


def kind_counts(report: Report) -> dict[Kind, int]:
    """How many trials ended how, in the order of `Kind`, without zeros."""
    kinds = [kind_of_line(line) for line in report.trials]
    return {kind: kinds.count(kind) for kind in Kind if kind in kinds}


def plural(count: int, noun: str) -> str:
    """`1 trial`, `2 trials`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def is_incomplete(report: Report) -> bool:
    """Whether something that was planned has no verdict, whatever the verdicts of the rest are."""
    totals = report.totals
    return bool(totals.void or totals.missing or not report.complete or report.interrupted_by)


def cause(outcome: Outcome) -> str:
    """Failure class, with the limit that was hit; empty for a pass."""
    if outcome.failure_class is None:
        return ""
    return (
        f"{outcome.failure_class.value} ({outcome.limit})" if outcome.limit else outcome.failure_class.value
    )


def attempt_words(attempt: Attempt) -> str:
    """What became of an attempt that does not decide."""
    return f"void: {cause(attempt.outcome)}" + (
        f": {attempt.outcome.detail}" if attempt.outcome.detail else ""
    )


def fault(outcome: Outcome) -> str:
    """Whose fault a void trial was."""
    if outcome.failure_class is FailureClass.TIMEOUT:
        return "the grader"
    return _FAULTS.get(outcome.failure_class, UNKNOWN) if outcome.failure_class else UNKNOWN


_FAULTS = {
    FailureClass.SETUP_FAILED: "the suite (set-up of its workspace)",
    FailureClass.CWD_MISSING: "the suite (its working directory)",
    FailureClass.COMMAND_ERROR: "the engine, the image, or the controller",
    FailureClass.ISOLATION_FAILED: "the isolation (nothing of this trial can be trusted)",
    FailureClass.GRADER_ERROR: "the grader",
    FailureClass.EVIDENCE_MISSING: "the evidence (it is missing or unusable)",
    FailureClass.PROVIDER_ERROR: "the model's provider",
    FailureClass.BUDGET_EXHAUSTED: "the run's budget",
    FailureClass.CANCELLED: "whoever interrupted the run",
}


def expected(line: TrialLine) -> str:
    """What the suite declares of a trial."""
    return f"failed ({line.expect_class})" if line.expect_class else line.expect or "passed"


def received(line: TrialLine) -> str:
    """What came of it."""
    why = cause(line.outcome)
    return f"{line.outcome.task.value} ({why})" if why else line.outcome.task.value


def number(value: float | None, unit: str = "") -> str:
    """A figure for people; null is `unknown`, never 0, and what is not 0 is not rounded to it."""
    if value is None:
        return UNKNOWN
    if isinstance(value, int):
        text = f"{value:,}"
    else:
        digits = 4 if abs(value) >= 0.001 or value == 0 else 1 - floor(log10(abs(value)))
        text = f"{value:,.{digits}f}".rstrip("0").rstrip(".")
    return f"{text} {unit}".rstrip()


def percent(share: float | None) -> str:
    """A share for people. Never rounded up to 100 %."""
    if share is None:
        return UNKNOWN
    return f"{min(share * 100, 99.9) if share < 1 else 100.0:.1f} %"


def duration(ms: float) -> str:
    """`870 ms`, `4.2 s`, `3 min 05 s`, `2 h 07 min`."""
    if ms < 1000:
        return f"{ms:.0f} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    minutes, seconds = divmod(int(ms / 1000), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {seconds:02} s"


def size(size_bytes: int) -> str:
    """`812 B`, `1.5 KiB`, `201.3 MiB`."""
    amount, units = float(size_bytes), ["B", "KiB", "MiB", "GiB", "TiB"]
    while amount >= 1024 and len(units) > 1:
        amount /= 1024
        units.pop(0)
    return f"{amount:.0f} B" if units[0] == "B" else f"{amount:.1f} {units[0]}"
