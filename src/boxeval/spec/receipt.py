"""What one ledger line says.

The envelope around it is in `boxeval.receipts.envelope`; docs/receipts.md has the format.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from boxeval.spec.base import Natural, Record, Sha256
from boxeval.spec.trial import Trial


class Opened(Record):
    """First line of a ledger: commits to the plan."""

    type: Literal["opened"] = "opened"
    run_id: str
    plan: Sha256 = Field(description="Of the canonical bytes of plan.json.")
    trials: Natural
    at: str


class Sealed(Record):
    """One finished trial."""

    type: Literal["trial"] = "trial"
    run_id: str
    plan: Sha256
    trial: Trial


class Resumed(Record):
    """The run goes on: behind a closing line, or behind the last whole line of a controller that died.

    A last line that was not written to its end was cut off; the record says what that was, and stands in its place.
    """

    type: Literal["resumed"] = "resumed"
    run_id: str
    plan: Sha256
    at: str
    torn_bytes: Natural = Field(0, description="Length of what was cut off.")
    torn_sha256: Sha256 | None = Field(
        None, description="Of what was cut off; None if the last line was whole."
    )


class Closed(Record):
    """Last line, unless a `Resumed` follows: commits to how many receipts there are and to the Merkle root over
    their line hashes.
    """

    type: Literal["closed"] = "closed"
    run_id: str
    plan: Sha256
    count: Natural
    root: Sha256
    at: str
    interrupted_by: str | None = Field(None, description="Signal that ended the run early.")


Body = Annotated[Opened | Sealed | Closed | Resumed, Field(discriminator="type")]


class Receipt(Record):
    """The signed payload of one line. `previous` is the hash of the line before, zeros for the first."""

    format: Literal["boxeval.receipt/1"] = "boxeval.receipt/1"
    index: Natural
    previous: Sha256
    body: Body
