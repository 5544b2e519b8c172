"""What a run of a case comes to: printed with `--json`, kept as run.json, read by `boxeval report --result-file`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from boxeval.spec.base import Natural, Positive, Record, Sha256
from boxeval.spec.case_run import Condition, Route
from boxeval.spec.outcome import Execution, FailureClass, Grading, TaskState


class States(Record):
    """The three states (contract G62)."""

    execution: Execution = Field(strict=False)
    grading: Grading = Field(strict=False)
    task: TaskState = Field(strict=False)


class CheckLine(Record):
    """What became of one check."""

    id: str
    grader: str
    status: str
    reason: str | None = None


class KeptFile(Record):
    """A file of the run's directory, by its path there, with its digest."""

    path: str
    sha256: Sha256
    size_bytes: Natural


class CaseTrial(States):
    """One trial, as it counts."""

    trial: Positive
    trial_id: str
    failure_class: FailureClass | None = Field(None, strict=False)
    detail: str | None = None
    checks: tuple[CheckLine, ...] = ()
    duration_ms: Natural | None = Field(description="None if the candidate was not started.")
    input_tokens: Natural | None
    output_tokens: Natural | None
    cost_usd: float | None
    message: KeptFile | None = None
    artifacts: tuple[KeptFile, ...] = ()


class CaseOutcome(States):
    """One case over its trials. A figure is None unless every trial has it (contract G72)."""

    case_id: str
    identity: Sha256
    dimensions: dict[str, Sha256] = Field(description="A digest for each dimension of the identity.")
    passed: Natural
    planned: Natural
    pass_rate: float | None
    duration_ms: Natural | None
    input_tokens: Natural | None
    output_tokens: Natural | None
    cost_usd: float | None
    trials: tuple[CaseTrial, ...]


class AppliedCondition(Record):
    """The condition that was asked for and the one that held; None if nothing was started."""

    requested: Condition
    applied: Condition | None


class Diagnostic(Record):
    """Why there is no run."""

    code: str
    message: str


class CaseResult(States):
    """The whole of it. Without a run, `run_id` and `evidence_path` are None and `diagnostic` says why."""

    format: Literal["boxeval.case-result/1"] = "boxeval.case-result/1"
    run_id: str | None = None
    exit_code: Natural
    evidence_path: str | None = Field(None, description="The run's directory.")
    checkpoint: str | None = Field(None, description="The line to pin elsewhere.")
    threshold: float | None = None
    condition: AppliedCondition | None = None
    candidate: Route | None = None
    semantic: Route | None = None
    cases: tuple[CaseOutcome, ...] = ()
    diagnostic: Diagnostic | None = None
