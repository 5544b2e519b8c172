"""What went between boxeval and the judge of a trial, and what a person decided."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from boxeval.spec.base import Id, Record, Sha256
from boxeval.spec.graded import EvidencePart

ANSWER_BYTES = 1024 * 1024
"""More than this of an answer is no answer."""
DOCUMENT_BYTES = 64 * 1024
"""The longest document that a judge is shown (G29)."""
REASON_CHARACTERS = 4096
MESSAGE = "message"


class Judged(Record):
    """One exchange with the judge, about one text. Exactly one of `answer` and `error` is set."""

    source: str = Field(description="`message`, or the `artifactPath` as it was declared.")
    check: Id | None = Field(
        None, description="The one check that it was about; None: all semantic checks of the source."
    )
    document: EvidencePart | None = Field(None, description="What the judge was shown: a blob of the run.")
    answer: str | None = Field(None, description="The text of the judge, as it came.")
    error: str | None = Field(None, description="Why there is none: never the candidate's doing.")


class HumanVerdict(Record):
    """What a person decided about one check of one trial. It is signed, and says what it was decided from."""

    format: Literal["boxeval.human/1"] = "boxeval.human/1"
    run_id: str
    trial_id: str
    check: Id
    question: Sha256 = Field(description="Of the question as it was asked.")
    evidence: Sha256 = Field(description="Over the final message and the changes that were there to look at.")
    verdict: Literal["pass", "fail"]
    reason: Annotated[str, StringConstraints(min_length=1, max_length=REASON_CHARACTERS)]
    by: str = Field(description="Name of the person, as given.")
    at: str
