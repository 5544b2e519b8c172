"""The extension protocol, version 1 (contract G64-G67): what is in the messages to an extension and from it.

A request goes to stdin of a fresh process, its response comes from stdout: one JSON document each. `describe` is spoken
over the discovery protocol, which does not change; the other methods over the protocol that both sides know.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints

from boxeval.spec.base import SAFE, Id, Record, Sha256

MESSAGE_BYTES = 8 * 1024 * 1024
DIAGNOSTIC_BYTES = 64 * 1024
TIMEOUT_MS = 30_000
RESULTS = 128
"""Of each kind, in one answer; observations in one request too."""
DISCOVERY, EXTENSION = "discovery.v1", "extension.v1"

Dialect = Literal["boxeval", "sevro"]
"""What names of the host's side begin with: protocols, capabilities, built-in graders, observations."""
DiscoveryProtocol = Literal["boxeval.discovery.v1", "sevro.discovery.v1"]
ExtensionProtocol = Literal["boxeval.extension.v1", "sevro.extension.v1"]
MessageId = Annotated[str, StringConstraints(min_length=1, max_length=128)]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]*(?:[.-][a-z0-9]+)+$", max_length=128)]
"""Two parts or more, as `example.word-count`."""
Names = Annotated[tuple[Name, ...], Field(max_length=RESULTS, json_schema_extra={"uniqueItems": True})]
Text = Annotated[str, StringConstraints(max_length=4096)]
JsonObject = dict[str, JsonValue]


class Method(StrEnum):
    """What a process is asked, in the order in which it happens."""

    DESCRIBE = "describe"
    RESOLVE = "resolve"
    PREPARE = "prepare"
    EVALUATE = "evaluate"


class DescribeParams(Record):
    """What this side can do. Nothing that is not listed here can be had."""

    protocols: Annotated[tuple[str, ...], Field(min_length=1)]
    engine_capabilities: Names = Field(description="Of boxeval itself.")
    host_capabilities: Names = Field(description="Of the agent that runs as candidate.")


class ExtensionInfo(Record):
    """Who answers. The ids of all its results begin with `id` and a dot."""

    id: Name
    version: Annotated[str, StringConstraints(min_length=1, max_length=128)]


class DescribeResult(Record):
    """Who the extension is, and what it needs and offers."""

    extension: ExtensionInfo
    protocols: Annotated[tuple[MessageId, ...], Field(min_length=1, max_length=16)] = Field(
        description="Every protocol that it speaks."
    )
    required_capabilities: Names = Field(description="Without one of these there is no assessment.")
    optional_capabilities: Names = Field(description="Used where they are there.")
    graders: Names = Field(description="Ids of the graders that it supplies.")
    task_verdict_policies: Names = Field(description="Ids of the verdict policies that it supplies.")


class Selectors(Record):
    """Which cases are wanted; without any, all."""

    case_ids: tuple[MessageId, ...] | None = None
    skill: MessageId | None = None
    plugin: MessageId | None = None


class ResolveParams(Record):
    """Asks for cases. `projectRoot` is a `file:///` URL, and names nothing that the process could open."""

    project_root: Annotated[str, StringConstraints(pattern=r"^file:///")]
    selectors: Selectors
    configuration: JsonObject


class DeclaredCheck(Record):
    """A check of a case, by one of the built-in graders or by one of the extension's own."""

    id: Id = Field(description="Unique in the task.")
    grader: Name = Field(description="A grader's name.")
    configuration: JsonObject = Field(description="What the grader is told.")


class ExtensionCase(Record):
    """A case. `fixture` is what a case file has there; whoever runs the case checks it."""

    id: MessageId
    prompt: Annotated[str, StringConstraints(min_length=1)]
    follow_up_prompt: str | None = None
    fixture: JsonObject
    checks: Annotated[tuple[DeclaredCheck, ...], Field(max_length=RESULTS)]
    required_evidence: Names
    extension_data: dict[Name, JsonValue] = Field(description="Comes back with every later request.")


class ResolveResult(Record):
    """Cases with ids that differ."""

    cases: Annotated[tuple[ExtensionCase, ...], Field(max_length=4096)]


class Host(Record):
    """The candidate's agent."""

    id: Name
    capabilities: Names


class PrepareParams(Record):
    """Asks what a case needs before its candidate runs."""

    case: ExtensionCase
    host: Host
    condition: Literal["passive", "enforced"]
    configuration: JsonObject


class PreparedArtifact(Record):
    """A file for the candidate's workspace; `sha256` is over the bytes that `contentBase64` stands for."""

    id: MessageId
    relative_path: Annotated[str, StringConstraints(min_length=1, max_length=4096)]
    sha256: Sha256
    content_base64: str
    executable: bool = False


class Instrumentation(Record):
    """Something that would watch or change how the candidate runs. boxeval has none, and refuses each by its id."""

    id: Name
    configuration: JsonObject


class PrepareResult(Record):
    """What a case needs."""

    artifacts: Annotated[tuple[PreparedArtifact, ...], Field(max_length=RESULTS)]
    requested_instrumentation: Annotated[tuple[Instrumentation, ...], Field(max_length=RESULTS)]
    extension_data: dict[Name, JsonValue]


class Execution(Record):
    """How the candidate's turn ended."""

    status: Literal["completed", "failed", "cancelled", "not_run"]
    error_code: Name | None = None


class Observation(Record):
    """Something that was seen of the candidate. What is not `complete` supports no passed check."""

    id: Name
    source: MessageId
    completeness: Literal["complete", "partial", "unavailable"]
    data: JsonObject


class BuiltinCheck(Record):
    """What a built-in grader found, before this extension was asked."""

    id: MessageId
    status: Literal["passed", "failed", "unavailable"]
    detail: Text | None = None
    evidence_refs: tuple[MessageId, ...]


class ArtifactRef(Record):
    """A file that the process can read, read-only. `path` is a `file:///` URL inside the box."""

    id: MessageId
    path: Annotated[str, StringConstraints(pattern=r"^file:///")]
    sha256: Sha256


class EvaluateParams(Record):
    """All that there is to judge. The candidate's files are in the box, in the directory BOXEVAL_WORKSPACE."""

    case_id: MessageId
    execution: Execution
    observations: Annotated[tuple[Observation, ...], Field(max_length=RESULTS)]
    builtin_checks: tuple[BuiltinCheck, ...]
    artifacts: tuple[ArtifactRef, ...]
    extension_data: dict[Name, JsonValue]
    selected_task_verdict_policy: Name | None = None
    configuration: JsonObject


class ExtensionCheck(Record):
    """One check. `passed` needs evidence, and all that it cites must be there and complete."""

    id: Id = Field(
        description="One of your own, or that of a check that the case declares by a grader of yours."
    )
    status: Literal["passed", "failed", "unavailable"]
    detail: Text | None = None
    evidence_refs: Annotated[tuple[MessageId, ...], Field(max_length=RESULTS)] = Field(
        description="Ids of observations, artifacts and built-in checks of the request."
    )


class Metric(Record):
    """A number; null means that it could not be measured, and is never zero."""

    id: Name
    value: Annotated[int, Field(ge=-SAFE, le=SAFE)] | float | None
    unit: MessageId


class DomainOutcome(Record):
    """Something that the extension's own field wants to know, beside the checks. It decides nothing."""

    id: Name
    status: Literal["passed", "failed", "unavailable"]
    detail: Text | None = None
    evidence_refs: Annotated[tuple[MessageId, ...], Field(max_length=RESULTS)]
    data: JsonObject | None = None


class EvaluateResult(Record):
    """What the extension found. The recommendation is there if, and only if, a verdict policy was selected."""

    checks: Annotated[tuple[ExtensionCheck, ...], Field(max_length=RESULTS)]
    metrics: Annotated[tuple[Metric, ...], Field(max_length=RESULTS)]
    domain_outcomes: Annotated[tuple[DomainOutcome, ...], Field(max_length=RESULTS)] = ()
    task_verdict_recommendation: Literal["passed", "failed", "not_assessed"] | None = None


class ErrorBody(Record):
    """Why there is no result. Whatever it says, the trial is neither passed nor failed by it."""

    code: Name
    message: Annotated[str, StringConstraints(min_length=1, max_length=4096)]
