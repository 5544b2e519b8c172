"""Checks as a suite declares them: `{id, grader, configuration}`, a typed configuration for each grader (G3).

`sevro.NAME` is read as `boxeval.NAME`. What types cannot say is in `formats.check_faults`; patterns and schemas
are compiled by `graders.preflight`. docs/graders.md has the meaning of every field.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    StringConstraints,
    Tag,
    model_serializer,
)

from boxeval.spec.base import Id, Natural, Record

Pattern = Annotated[str, StringConstraints(min_length=1, max_length=4096)]
Pointer = Annotated[str, StringConstraints(max_length=4096)]
Run = Annotated[str, StringConstraints(min_length=1, max_length=4096)]
FilePath = Annotated[str, StringConstraints(min_length=1, max_length=4096)]
_ALIAS = "sevro."


class Configuration(Record):
    """What one grader is told. Written as it was set: `equals: null` is not the same as no `equals`."""

    @model_serializer(mode="wrap")
    def _as_set(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields = type(self).model_fields
        names = self.model_fields_set | {fields[name].alias for name in self.model_fields_set}
        return {key: value for key, value in handler(self).items() if key in names}

    def has(self, *names: str) -> bool:
        """Whether one of these fields is set, to whatever value."""
        return not self.model_fields_set.isdisjoint(names)


Flags = Annotated[str, StringConstraints(max_length=8)]


class RegexConfiguration(Configuration):
    """An ECMAScript pattern over the final message, always multiline."""

    pattern: Pattern = Field(description="ECMAScript regular expression.")
    negate: bool = Field(False, description="Pass if it does not match.")
    flags: Flags = Field("", description="Of `i`, `s` and `u`, each at most once; multiline is always on.")


class JsonConfiguration(Configuration):
    """A value of a JSON document in the final message."""

    pointer: Pointer = Field("", description="JSON Pointer (RFC 6901) to the value; empty is the document.")
    equals: JsonValue = Field(None, description="The value, strict in type.")
    contains: JsonValue = Field(None, description="A member of the array there has at least this.")
    exact_document: bool = Field(False, description="Nothing but the document in the message.")


class SchemaConfiguration(Configuration):
    """A JSON Schema (Draft 2020-12) for the JSON document in the final message."""

    schema_: dict[str, JsonValue] = Field(
        alias="schema", description="The schema; its references stay in it."
    )
    exact_document: bool = Field(False, description="Nothing but the document in the message.")


class TextAssertions(Configuration):
    """Assertions on a text: the final message, or what a command printed."""

    expect_exact: str | None = Field(None, description="The whole text.")
    expect_regex: Pattern | None = Field(None, description="ECMAScript pattern that must match.")
    not_regex: Pattern | None = Field(None, description="ECMAScript pattern that must not match.")
    flags: Flags = Field("", description="Of both patterns: `i`, `s`, `u`.")

    @property
    def asserts_text(self) -> bool:
        """Whether anything is asked of the text."""
        return not (self.expect_exact is None and self.expect_regex is None and self.not_regex is None)


class OutputConfiguration(TextAssertions):
    """Several assertions on the final message with one outcome, in a fixed order."""

    valid_json: bool = Field(False, description="The message holds a JSON document.")
    schema_: dict[str, JsonValue] | None = Field(
        None, alias="schema", description="Draft 2020-12, for the document."
    )
    json_path: Pointer | None = Field(None, description="JSON Pointer to the value for what follows.")
    expect_json: JsonValue = Field(None, description="The value there, strict in type.")
    contains_json: JsonValue = Field(None, description="A member of the array there has at least this.")


class ShellConfiguration(TextAssertions):
    """A command over what the candidate left, in a box of its own (`sh -e`)."""

    run: Run = Field(description="Shell text.")
    expected_exit_code: Annotated[int, Field(ge=0, le=255)] = Field(0, description="Anything else fails.")
    timeout_ms: Annotated[int, Field(ge=1, le=120_000)] = Field(
        30_000, description="Milliseconds; past it grading is an error."
    )


class GitHeadConfiguration(Configuration):
    """HEAD of the fixture's repository against the one before the candidate ran."""

    kind: Literal["changed", "unchanged", "base-ancestor"] = Field(
        description="`base-ancestor`: what HEAD was then is an ancestor of it, or still is HEAD."
    )


class StateConfiguration(Configuration):
    """A value in a JSON or SQLite file of the workspace is one of several."""

    file: FilePath = Field(description="Path in the workspace.")
    pointer: Pointer | None = Field(None, description="JSON Pointer into a JSON file.")
    query: Run | None = Field(None, description="One SELECT in an SQLite file; its first value counts.")
    one_of: Annotated[tuple[JsonValue, ...], Field(min_length=1)] = Field(description="Values that pass.")
    or_missing: bool = Field(False, description="It passes too if there is no such value.")


class LogParseConfiguration(Configuration):
    """Enough events of a JSON Lines file match."""

    file: FilePath = Field(description="Path in the workspace, one JSON object a line.")
    where: dict[str, JsonValue] = Field(
        default_factory=dict, description="What an event has at least; empty counts all."
    )
    at_least: Natural = Field(1, description="Events.")


class ReadyConfiguration(Configuration):
    """A value is a member of an array, or a key of an object, in a JSON file of the workspace."""

    file: FilePath = Field(description="Path in the workspace.")
    pointer: Pointer = Field("", description="JSON Pointer to the array or object.")
    member: JsonValue = Field(description="The member, or the key.")
    ready: bool = Field(True, description="Whether it is to be there.")


class OutcomeConfiguration(Configuration):
    """A number in a JSON file of the workspace, clamped to 0..1, is the score; true is 1 and false is 0."""

    file: FilePath = Field(description="Path in the workspace.")
    pointer: Pointer = Field("", description="JSON Pointer to the number.")
    at_least: Annotated[float, Field(ge=0, le=1)] = Field(1.0, description="The score that passes.")


class EventBudgetConfiguration(Configuration):
    """Not too many events of a JSON Lines file match."""

    file: FilePath = Field(description="Path in the workspace, one JSON object a line.")
    where: dict[str, JsonValue] = Field(
        default_factory=dict, description="What an event has at least; empty counts all."
    )
    at_most: Natural = Field(description="Events.")


class JudgedConfiguration(Configuration):
    """What a judge looks at: the final message, or one document of the workspace."""

    artifact_path: FilePath | None = Field(
        None,
        description="The document, instead of the final message: a path in the workspace, with at most one `*` "
        "in its last part.",
    )


class SemanticConfiguration(JudgedConfiguration):
    """A proposition that a model judges, true or false."""

    proposition: Annotated[str, StringConstraints(min_length=1, max_length=8192)] = Field(
        description="What is to be true of the message or document. At most 8 KiB."
    )


class ModelConfiguration(JudgedConfiguration):
    """One dimension of quality that a model scores by itself."""

    dimension: Annotated[str, StringConstraints(min_length=1, max_length=256)] = Field(
        description="What is scored, in a few words."
    )
    rubric: Annotated[str, StringConstraints(min_length=1, max_length=8192)] = Field(
        description="What a score of 0 and of 1 means. At most 8 KiB."
    )
    threshold: Annotated[float, Field(ge=0, le=1)] = Field(0.6, description="The score that passes.")


class HumanConfiguration(Configuration):
    """A question that a person answers with `boxeval grade`."""

    question: Annotated[str, StringConstraints(min_length=1, max_length=8192)] = Field(
        description="What the person is to decide."
    )


def grader_name(name: object) -> object:
    """A grader's name as boxeval writes it; what is no name stays as it is."""
    if isinstance(name, str) and name.startswith(_ALIAS):
        return f"boxeval.{name.removeprefix(_ALIAS)}"
    return name


def _evidence_name(name: object) -> object:
    if name == "sevro.observation.final-message":
        return "boxeval.message"
    short = name.removeprefix(_ALIAS) if isinstance(name, str) else ""
    return f"boxeval.{short}" if name == f"{_ALIAS}{short}" and "." not in short else name


EvidenceName = Annotated[
    Annotated[str, StringConstraints(min_length=1, max_length=128)], BeforeValidator(_evidence_name)
]
"""Something that `requiredEvidence` may name, as boxeval writes it."""
_own = BeforeValidator(grader_name)
_says = Field(description="The grader's name.")


class Declared(Record):
    """A check by name."""

    id: Id = Field(description="Unique in the task.")


class RegexCheck(Declared):
    """A pattern that the final message matches, or does not."""

    grader: Annotated[Literal["boxeval.regex"], _own, _says]
    configuration: RegexConfiguration


class JsonCheck(Declared):
    """A value in the final message's JSON."""

    grader: Annotated[Literal["boxeval.json"], _own, _says]
    configuration: JsonConfiguration


class SchemaCheck(Declared):
    """A schema that the final message's JSON fits."""

    grader: Annotated[Literal["boxeval.schema"], _own, _says]
    configuration: SchemaConfiguration


class OutputCheck(Declared):
    """Several assertions on the final message."""

    grader: Annotated[Literal["boxeval.output"], _own, _says]
    configuration: OutputConfiguration


class ShellCheck(Declared):
    """A command over what the candidate left."""

    grader: Annotated[Literal["boxeval.shell"], _own, _says]
    configuration: ShellConfiguration


class GitHeadCheck(Declared):
    """Whether and how HEAD moved."""

    grader: Annotated[Literal["boxeval.git-head"], _own, _says]
    configuration: GitHeadConfiguration


class StateCheck(Declared):
    """A value in a file."""

    grader: Annotated[Literal["boxeval.state"], _own, _says]
    configuration: StateConfiguration


class LogParseCheck(Declared):
    """Enough matching events."""

    grader: Annotated[Literal["boxeval.log-parse"], _own, _says]
    configuration: LogParseConfiguration


class ReadyCheck(Declared):
    """Membership."""

    grader: Annotated[Literal["boxeval.ready"], _own, _says]
    configuration: ReadyConfiguration


class OutcomeCheck(Declared):
    """A score in a file."""

    grader: Annotated[Literal["boxeval.outcome"], _own, _says]
    configuration: OutcomeConfiguration


class EventBudgetCheck(Declared):
    """Not too many events."""

    grader: Annotated[Literal["boxeval.event-budget"], _own, _says]
    configuration: EventBudgetConfiguration


class SemanticCheck(Declared):
    """A proposition, judged."""

    grader: Annotated[Literal["boxeval.semantic"], _own, _says]
    configuration: SemanticConfiguration


class ModelCheck(Declared):
    """A dimension, scored by a model."""

    grader: Annotated[Literal["boxeval.model"], _own, _says]
    configuration: ModelConfiguration


class HumanCheck(Declared):
    """A question for a person."""

    grader: Annotated[Literal["boxeval.human"], _own, _says]
    configuration: HumanConfiguration


TextCheck = RegexCheck | JsonCheck | SchemaCheck | OutputCheck
"""Checks that look at the final message alone."""
FileCheck = StateCheck | LogParseCheck | ReadyCheck | OutcomeCheck | EventBudgetCheck
"""Checks that look at one file of the workspace: the code graders of V40."""
JudgedCheck = SemanticCheck | ModelCheck
"""Checks that a model decides."""
AnyCheck = TextCheck | ShellCheck | GitHeadCheck | FileCheck | JudgedCheck | HumanCheck


def _tag(value: Any) -> str | None:
    name = grader_name(value.get("grader") if isinstance(value, dict) else getattr(value, "grader", None))
    return name if isinstance(name, str) else None


Check = Annotated[
    Annotated[RegexCheck, Tag("boxeval.regex")]
    | Annotated[JsonCheck, Tag("boxeval.json")]
    | Annotated[SchemaCheck, Tag("boxeval.schema")]
    | Annotated[OutputCheck, Tag("boxeval.output")]
    | Annotated[ShellCheck, Tag("boxeval.shell")]
    | Annotated[GitHeadCheck, Tag("boxeval.git-head")]
    | Annotated[StateCheck, Tag("boxeval.state")]
    | Annotated[LogParseCheck, Tag("boxeval.log-parse")]
    | Annotated[ReadyCheck, Tag("boxeval.ready")]
    | Annotated[OutcomeCheck, Tag("boxeval.outcome")]
    | Annotated[EventBudgetCheck, Tag("boxeval.event-budget")]
    | Annotated[SemanticCheck, Tag("boxeval.semantic")]
    | Annotated[ModelCheck, Tag("boxeval.model")]
    | Annotated[HumanCheck, Tag("boxeval.human")],
    Discriminator(_tag),
]
MAX_CHECKS = 128
"""Observations of one trial (G73)."""
