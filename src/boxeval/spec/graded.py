"""What was seen and decided of the checks of one trial: the message they read, and one record a check."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from boxeval.spec.base import Id, Natural, Record, Sha256
from boxeval.spec.box import BoxResult

MESSAGE_BYTES = 8 * 1024 * 1024
"""The longest final message that is graded (G73)."""
EXCERPT = 200
"""Characters of `expected` and `received` (V14)."""


class MessageStatus(StrEnum):
    """Whether there is a final message to look at. Anything but complete makes output checks unavailable (G4)."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    MISSING = "missing"


class FinalMessage(Record):
    """The candidate's final message. The text is a private blob; it need not be UTF-8."""

    status: MessageStatus = Field(strict=False)
    size_bytes: Natural = 0
    sha256: Sha256 | None = Field(None, description="Blob of a complete message; None otherwise.")
    reason: str | None = Field(None, description="Why it is not complete.")


class CheckStatus(StrEnum):
    """What became of a check. `failed` is about the candidate; `error` is the grader's or engine's doing."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    UNAVAILABLE = "unavailable"


class CheckVerdict(Record):
    """What a grader makes of evidence, in words for people.

    `limit` is which of its own limits it ran into, with status error: `time`, `memory` or `output`.
    """

    status: CheckStatus = Field(strict=False)
    reason: str | None = None
    expected: str | None = None
    received: str | None = None
    limit: Literal["time", "memory", "output"] | None = None
    score: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None, description="Of a passed or failed check, for weighted scoring."
    )


class EvidencePart(Record):
    """Something that a check looked at, by name and content."""

    name: str
    sha256: Sha256


class CheckSeen(CheckVerdict):
    """One declared check: its verdict, and the observation that it was decided from (G18)."""

    id: Id
    grader: str = Field(description="By boxeval's own name for it.")
    evidence: tuple[EvidencePart, ...] = ()
    value: JsonValue = Field(
        None, description="What a code grader found, as `boxeval.graders.files` tells it."
    )
    box: BoxResult | None = Field(None, description="Of a check that ran in one.")


class GitHeadSeen(Record):
    """HEAD before the candidate ran, HEAD after, and whether the one is an ancestor of the other (G23).

    With `error` set there is nothing to decide from.
    """

    base: str | None = None
    current: str | None = None
    base_is_ancestor: bool | None = None
    error: str | None = None
    box: BoxResult | None = Field(None, description="The box that read the state after the candidate.")
