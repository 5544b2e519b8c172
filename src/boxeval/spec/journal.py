"""What an agent's own session ledger says, read by the controller. All of it is the agent's claim."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from boxeval.spec.base import Natural, Record, Sha256

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]


class AgentReceipt(Record):
    """The line that seals a session. Its tokens are what the agent counted, never what went over the wire."""

    session: Name
    parent: Name | None
    role: Name
    reason: Name
    exit_code: Annotated[int, Field(ge=0, le=255)] | None
    claimed_input: Natural | None = None
    claimed_output: Natural | None = None
    claimed_total: Natural | None = None
    valid: bool = Field(description="It is the last line of its session, and its digest recomputes.")


class LoopRun(Record):
    """A bounded loop, told from the single verifications and workers, not from its own summary."""

    session: Name
    max_attempts: Natural
    attempts: Natural = Field(description="Verifications made.")
    repairs: Natural = Field(description="Repairs that were dispatched.")
    repairs_sealed: Natural = Field(description="Of these, how many have a valid receipt of their own.")
    solved: bool = Field(description="Whether the last verification exited 0.")
    reason: Name | None = Field(description="Why it ended, as it says itself; None if it does not say.")
    skipped: Natural = 0
    unneeded: Natural = 0


class Journal(Record):
    """One session ledger. Without `sha256` there is none, and `fault` says why."""

    sha256: Sha256 | None = Field(description="Blob of the file.")
    fault: str | None = None
    format_version: Natural | None = None
    torn: Natural = Field(0, description="Lines that are no entry.")
    sessions: Natural = 0
    unsealed: Natural = Field(0, description="Sessions without a receipt.")
    calls_unmatched: Natural = Field(0, description="Calls without a result, and the reverse.")
    messages_between: Natural = Field(0, description="Messages of the model between a call and its result.")
    tools_failed: Natural = 0
    tools_blocked: Natural = 0
    compactions: Natural = 0
    summaries: Natural = Field(0, description="Compactions that left a summary.")
    answered_from_before: bool | None = Field(
        None,
        description="Whether final answers name what was told before a compaction only; None without one.",
    )
    receipts: tuple[AgentReceipt, ...] = ()
    loops: tuple[LoopRun, ...] = ()
