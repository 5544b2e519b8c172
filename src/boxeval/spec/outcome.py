"""Closed sets that say what happened and whose doing it was (the outcomes table in docs/outcomes.md)."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from boxeval.spec.base import Record


class Execution(StrEnum):
    """How the candidate's turn ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    NOT_RUN = "not_run"


class Grading(StrEnum):
    """Whether there is a grade to speak of."""

    COMPLETED = "completed"
    ERROR = "error"
    UNAVAILABLE = "unavailable"
    NOT_REQUESTED = "not_requested"


class TaskState(StrEnum):
    """The verdict on the candidate."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_ASSESSED = "not_assessed"


class FailureClass(StrEnum):
    """What went wrong first (S19 and the additions of the outcomes table)."""

    VERIFIER_FAILED = "verifier_failed"
    ASSERTION_FAILED = "assertion_failed"
    ASSERTION_UNRESOLVED = "assertion_unresolved"
    FORBIDDEN_PATH = "forbidden_path"
    WRITES_BOUNDARY_VIOLATION = "writes_boundary_violation"
    RUNNER_FAILED = "runner_failed"
    TIMEOUT = "timeout"
    OOM = "oom"
    RESOURCE_LIMIT = "resource_limit"
    SETUP_FAILED = "setup_failed"
    CWD_MISSING = "cwd_missing"
    COMMAND_ERROR = "command_error"
    ISOLATION_FAILED = "isolation_failed"
    GRADER_ERROR = "grader_error"
    EVIDENCE_MISSING = "evidence_missing"
    PROVIDER_ERROR = "provider_error"
    BUDGET_EXHAUSTED = "budget_exhausted"
    CANCELLED = "cancelled"


class VerdictClass(StrEnum):
    """The only class that verdict panels read (V12)."""

    ASSERTION = "assertion"
    CONTRACT = "contract"
    TIMEOUT = "timeout"
    INFRA = "infra"


class Weight(StrEnum):
    """Whether an outcome enters pass rates. A void trial makes its run incomplete."""

    SCORED = "scored"
    VOID = "void"
    NOT_COUNTED = "not_counted"


class Outcome(Record):
    """One row of the outcomes table.

    `limit` names which deadline or limit; `detail` is one line for people.
    """

    execution: Execution = Field(strict=False)
    grading: Grading = Field(strict=False)
    task: TaskState = Field(strict=False)
    failure_class: FailureClass | None = Field(None, strict=False)
    verdict_class: VerdictClass | None = Field(None, strict=False)
    weight: Weight = Field(strict=False)
    limit: str | None = None
    detail: str | None = None
