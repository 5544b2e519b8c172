"""Models of a suite, as written and as planned: where the answers of a candidate's model come from."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from boxeval.spec.base import EnvName, Natural, Positive, Record, Sha256

Price = Annotated[float, Field(ge=0, le=1_000_000)]
LinearPattern = Annotated[str, StringConstraints(min_length=1, max_length=1000)]


class When(Record):
    """What the agent must have sent since the last answer for a turn to be served; all that is named must hold.

    Patterns have RE2's syntax and are searched for. A named group becomes a variable: `{{name}}` in later texts.
    """

    last_message: LinearPattern | None = Field(None, description="In the last words that are no tool's.")
    tool_result: LinearPattern | None = Field(None, description="In what any tool gave back.")
    tool_failed: bool | None = Field(
        None, description="Whether any tool failed, where the protocol tells (Messages does)."
    )


class _Turn(Record):
    when: When | None = Field(
        None, description="Else the turn is left out for good, and the next one is tried."
    )


class _Spoken(_Turn):
    delay_ms: Annotated[int, Field(ge=0, le=3_600_000)] = Field(0, description="Waits before the answer.")
    cut_after: Natural | None = Field(
        None, description="Ends the connection after so many events of a stream, or in the middle of a body."
    )
    garble_after: Natural | None = Field(
        None, description="Spoils the event after so many of a stream, or the body: it is no JSON."
    )


class Text(_Spoken):
    """A scripted turn: the model says this and ends its turn."""

    text: str = Field(description="What the model says.")


class ToolCall(Record):
    """One tool call of a scripted turn."""

    tool: Annotated[str, StringConstraints(min_length=1, max_length=64)] = Field(
        description="Name of the tool. The reference agent has read, write, edit, bash, glob and grep."
    )
    input: dict[str, bool | int | float | str | list[str] | None] = Field(
        default_factory=dict,
        description="Arguments of the tool. A tool that takes plain text gets the value of `input`.",
    )


class ToolCalls(_Spoken):
    """A scripted turn: the model asks for these tools, all in one batch."""

    calls: Annotated[tuple[ToolCall, ...], Field(min_length=1)] = Field(description="The batch.")
    text: str | None = Field(None, description="What the model says before it.")


class Refusal(_Spoken):
    """A scripted turn: the model declines, in the way that the protocol has for it."""

    refusal: str = Field(description="What the model says.")


class Failure(_Turn):
    """A scripted turn: the request gets an error, and the next one the next turn."""

    error: Annotated[int, Field(ge=400, le=599)] = Field(description="HTTP status, e.g. 429 or 500.")


class TokenUsage(Record):
    """What every scripted turn reports as used. Cached tokens are among those of `input`."""

    input: Natural = Field(100, description="Input tokens of a turn.")
    output: Natural = Field(20, description="Output tokens of a turn.")
    cache_read: Natural = Field(0, description="Of these input tokens, read from a cache.")
    cache_write: Natural = Field(0, description="Of these input tokens, written to a cache.")
    cost_usd: Annotated[float, Field(ge=0)] | None = Field(None, description="Cost of a turn in US dollars.")


class Script(Record):
    """A scripted model: turns are served one a request; running out is an error, never a hang (S47)."""

    turns: Annotated[tuple[Text | ToolCalls | Refusal | Failure, ...], Field(min_length=1)] = Field(
        description="Answers in order: each has `text`, `calls`, `refusal` or `error`."
    )
    usage: TokenUsage = Field(TokenUsage(), description="Reported for every turn.")
    background: str = Field(
        "OK",
        description="What a request gets that is not part of the agent's conversation, such as one for a title.",
    )


class ScriptModel(Record):
    """A model that reads its answers from a script."""

    script: str | Script = Field(description="A script file relative to the suite, or the script itself.")


class ReplayModel(Record):
    """A model that gives the answers of a cassette: what a real one once said to the same requests."""

    replay: Annotated[str, StringConstraints(min_length=1, max_length=4096)] = Field(
        description="A cassette file relative to the suite, made by `boxeval run --record`."
    )
    ignore: Annotated[tuple[str, ...], Field(max_length=100)] = Field(
        (),
        description="JSON pointers to parts of a request that may differ from the recorded one, e.g. `/system`; "
        "`*` is every item of a list.",
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
    key: EnvName | None = Field(
        None, description="Name of the key in the operator's keyring; a provider's own variable without it."
    )
    pricing: Pricing | None = Field(None, description="Instead of the price that boxeval's table has.")


Model = ScriptModel | ReplayModel | UpstreamModel
"""A named model: where its answers come from."""


class PlannedReplay(Record):
    """A replayed model with its cassette resolved."""

    cassette: Sha256 = Field(description="Over the cassette's bytes.")
    model: str = Field(description="Name of the model that was recorded.")
    wires: tuple[str, ...] = Field(description="Protocols that were recorded.")
    ignore: tuple[str, ...] = ()


class PlannedUpstream(Record):
    """A real model with its place and its price resolved. No key is in it, only the name of one."""

    base_url: str
    model: str
    key: str | None = None
    pricing: Pricing | None = Field(None, description="None: the cost of this model is not known.")
    prices_of: str | None = Field(
        None, description="Date of boxeval's price table, if the price is from there."
    )


PlannedModel = Script | PlannedReplay | PlannedUpstream


class Budget(Record):
    """What model traffic may come to; past a limit every request gets an error. Each is looked at before a request."""

    requests: Positive | None = Field(None, description="Answered requests.")
    tokens: Positive | None = Field(None, description="Input and output tokens.")
    bytes: Positive | None = Field(None, description="Bodies of requests and answers.")
    seconds: Positive | None = Field(None, description="Time in which answers were made.")


class TrialBudget(Budget):
    """The same for one trial, with its cost."""

    cost_usd: Annotated[float, Field(gt=0)] | None = Field(
        None, description="Cost in US dollars, where it is known."
    )
