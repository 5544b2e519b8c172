"""What a run says in the end: derived from a verified run alone, and the source of every report format."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from boxeval.spec.base import Natural, Record, Scalar, Sha256
from boxeval.spec.cause import FailureCause
from boxeval.spec.estimates import Estimates, MeanEstimates
from boxeval.spec.graded import CheckVerdict
from boxeval.spec.outcome import Outcome
from boxeval.spec.plan import PlannedImage, Provenance, SuiteRef
from boxeval.spec.suite import Assertion


class EvidenceRef(Record):
    """A blob of the run that shows why, e.g. `grader 1 stdout`."""

    name: str
    sha256: Sha256


class Attempt(Record):
    """An attempt at a trial that does not decide: void, and tried again later."""

    attempt: int
    started_at: str
    wall_ms: Natural
    outcome: Outcome


class CheckLine(CheckVerdict):
    """One check of a trial."""

    id: str
    grader: str


class TrialLine(Record):
    """One trial, as it counts. `as_expected` is None unless the trial is scored."""

    key: str = Field(description="task[target]#repeat")
    trial_id: str
    task: str
    target: str
    repeat: int
    attempt: int
    others: tuple[Attempt, ...] = Field(description="Attempts that were void; they are in no number.")
    title: str | None
    expect: Literal["passed", "failed"] | None
    expect_class: str | None
    outcome: Outcome
    failure_cause: FailureCause | None = Field(description="None unless the trial failed or is void.")
    as_expected: bool | None
    started_at: str
    wall_ms: Natural
    steps_ms: dict[str, int]
    metrics: dict[str, Scalar]
    evidence: tuple[EvidenceRef, ...]
    checks: tuple[CheckLine, ...] = ()
    look: str = Field(description="The command that shows this trial.")


class Counts(Record):
    """How many trials ended how. All planned `trials` = passed + failed + void + not_counted + missing.

    `as_expected` and `unexpected` divide the scored ones. `pass_rate` is over scored trials of tasks that do
    not declare `expect: failed`; None if there are none.
    """

    trials: Natural
    passed: Natural
    failed: Natural
    void: Natural
    not_counted: Natural
    missing: Natural
    as_expected: Natural
    unexpected: Natural
    pass_rate: float | None


class Row(Record):
    """One task for one target. `collected` is its `metrics.collect`: a value a trial, in plan order."""

    task: str
    target: str
    title: str | None
    expect: Literal["passed", "failed"] | None
    counts: Counts
    collected: dict[str, tuple[Scalar, ...]]
    estimates: Estimates


class Tokens(Record):
    """Sums over the trials whose tokens were counted, `measured_runs` of `runs`. None, never 0, if none."""

    measured_runs: Natural
    runs: Natural
    input: Natural | None
    output: Natural | None
    total: Natural | None


class Cost(Record):
    """`known_usd` is the sum over the trials whose cost is known, None if there are none."""

    known_usd: float | None
    known_runs: Natural
    unknown_runs: Natural


class ThresholdResult(Record):
    """A failure condition of the suite. It fires on a scored trial where it holds or cannot be resolved."""

    condition: Assertion
    fired_by: tuple[str, ...]
    unresolved: tuple[str, ...] = Field(description="Those of fired_by whose metric is unmeasured.")


class Report(Record):
    """A whole run. Void and missing trials are beside the numbers, never in them."""

    format: Literal["boxeval.report/1"] = "boxeval.report/1"
    run_id: str
    suite: SuiteRef
    provenance: Provenance
    images: dict[str, PlannedImage]
    hermetic: bool
    selection: dict[str, str]
    left_out: Natural
    opened_at: str
    resumed_at: tuple[str, ...]
    closed_at: str | None
    interrupted_by: str | None
    complete: bool
    missing: tuple[str, ...]
    problems: tuple[str, ...]
    keyid: Sha256
    key_label: str
    checkpoint: str | None
    totals: Counts
    rows: tuple[Row, ...]
    estimates: MeanEstimates = Field(description="Of the rows that declare no `expect: failed`.")
    trials: tuple[TrialLine, ...]
    tokens: Tokens
    cost: Cost
    wall_time_ms: Natural | None = Field(
        description="From opening to closing; None if it was never closed, or resumed in between."
    )
    trials_ms: Natural = Field(description="Sum over the trials that ran.")
    thresholds: tuple[ThresholdResult, ...]
