"""Why a trial did not pass, in one word and one line (contract V13)."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from boxeval.spec.base import Record


class CauseKind(StrEnum):
    """In order of precedence: the first that applies is the cause."""

    CONTRACT = "contract"
    PRE_TURN_INFRA = "pre_turn_infra"
    API_ERROR = "api_error"
    REFUSAL = "refusal"
    PROVIDER_STALL = "provider_stall"
    SESSION_TIMEOUT = "session_timeout"
    OBSERVER_TIMEOUT = "observer_timeout"
    ASSERTION = "assertion"
    UNKNOWN = "unknown"


class FailureCause(Record):
    """Derived by the controller from what it saw; nothing that a trial prints about itself is in it."""

    kind: CauseKind = Field(strict=False)
    evidence: str = Field(max_length=300)
