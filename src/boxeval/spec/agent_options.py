"""What a suite may ask of the reference agent beside its prompt (docs/reference-agent.md)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from boxeval.spec.base import Positive, Record

Argument = Annotated[str, StringConstraints(min_length=1, max_length=131_071)]
ServerName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{1,32}$")]


class LoopOptions(Record):
    """A bounded loop: a worker does the work, then it is verified and repaired in turn."""

    verify: Argument = Field(description="Shell command in the agent's own box; exit code 0 ends the loop.")
    max_attempts: Annotated[int, Field(ge=1, le=5)] = Field(3, description="Verifications, not repairs.")


class AgentOptions(Record):
    """Settings of the reference agent, for runners of kind scripted."""

    surface: Literal["main", "worker"] = Field(
        "main", description="`worker`: the agent has another process of itself do the work."
    )
    continue_session: bool = Field(
        False, description="Go on from the last session in the home, as a later step can."
    )
    context_tokens: Positive | None = Field(
        None, description="A longer conversation is compacted: the model sums it up, which takes a turn."
    )
    stop_gate: bool = Field(
        False, description="Send a report back, once, if changes were not tried with `bash` before it."
    )
    mcp: dict[ServerName, Annotated[tuple[Argument, ...], Field(min_length=1)]] = Field(
        default_factory=dict, description="MCP servers on stdio, by name; their tools are `NAME__TOOL`."
    )
    loop: LoopOptions | None = Field(None, description="Work in a bounded loop.")
