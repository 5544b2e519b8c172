"""Models of a suite: where the answers of a candidate's model come from."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from boxeval.spec.base import Natural, Record

Price = Annotated[float, Field(ge=0, le=1_000_000)]


class Text(Record):
    """A scripted turn: the model says this and ends its turn."""

    text: str = Field(description="What the model says.")


class ToolCall(Record):
    """One tool call of a scripted turn."""

    tool: Annotated[str, StringConstraints(min_length=1, max_length=64)] = Field(
        description="Name of the tool. The reference agent has read, write, edit, bash, glob and grep."
    )
    input: dict[str, bool | int | float | str | list[str] | None] = Field(
        default_factory=dict, description="Arguments of the tool."
    )


class ToolCalls(Record):
    """A scripted turn: the model asks for these tools, all in one batch."""

    calls: Annotated[tuple[ToolCall, ...], Field(min_length=1)] = Field(description="The batch.")


class Usage(Record):
    """What every scripted turn reports as used."""

    input: Natural = Field(100, description="Input tokens of a turn.")
    output: Natural = Field(20, description="Output tokens of a turn.")
    cost_usd: Annotated[float, Field(ge=0)] | None = Field(None, description="Cost of a turn in US dollars.")


class Script(Record):
    """A scripted model: turns are served one a request; running out is an error, never a hang (S47)."""

    turns: Annotated[tuple[Text | ToolCalls, ...], Field(min_length=1)] = Field(
        description="Answers in order: each has `text` or `calls`."
    )
    usage: Usage = Field(Usage(), description="Reported for every turn.")


class ScriptModel(Record):
    """A model that reads its answers from a script."""

    script: str | Script = Field(description="A script file relative to the suite, or the script itself.")


class ReplayModel(Record):
    """A model that gives the answers of a cassette: what a real one once said to the same requests."""

    replay: Annotated[str, StringConstraints(min_length=1, max_length=4096)] = Field(
        description="A cassette file relative to the suite, made by `boxeval run --record`."
    )


class Pricing(Record):
    """Prices in US dollars for a million tokens. What is not named costs what `input` does."""

    input: Price = Field(description="Of a million input tokens.")
    output: Price = Field(description="Of a million output tokens.")
    cache_read: Price | None = Field(None, description="Of a million input tokens read from a cache.")
    cache_write: Price | None = Field(None, description="Of a million input tokens written to a cache.")


class UpstreamModel(Record):
    """A real model of a provider. The gateway adds the key; no box ever sees it."""

    upstream: Annotated[str, StringConstraints(min_length=1, max_length=2048)] = Field(
        description="`openai`, `anthropic`, or the base URL of a server that speaks as one of them does."
    )
    model: Annotated[str, StringConstraints(min_length=1, max_length=256)] = Field(
        description="The provider's name of the model."
    )
    pricing: Pricing | None = Field(None, description="Instead of the price that boxeval's table has.")


Model = ScriptModel | ReplayModel | UpstreamModel
"""A named model: where its answers come from."""
