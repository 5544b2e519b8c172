"""An extension as a suite declares it (`verify.extension`), and what a trial saw of it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, JsonValue

from boxeval.spec.base import Id, Record, Sha256
from boxeval.spec.box import BoxResult
from boxeval.spec.checks import grader_name
from boxeval.spec.extension import (
    RESULTS,
    TIMEOUT_MS,
    DeclaredCheck,
    Dialect,
    DomainOutcome,
    JsonObject,
    Method,
    Metric,
    Name,
    Names,
)
from boxeval.spec.graded import CheckSeen
from boxeval.spec.workspace import Command, RelativePath

COMMANDS = "boxeval.commands"
"""How `replaces`, and the checks that an extension is told of, name `verify.commands`."""
FAULT = "boxeval.extension"
"""Id of the check that stands for an extension which gave nothing to grade by."""


class ExtensionUse(Record):
    """An executable that adds checks, in a grader's box of its own for each question."""

    command: Annotated[tuple[Command, ...], Field(min_length=1, max_length=64)] = Field(
        description="Program and arguments; no shell reads them. A word that is the path of a file beside the suite "
        "takes that file into the box."
    )
    sources: Annotated[tuple[RelativePath, ...], Field(max_length=256)] = Field(
        (), description="Further files and directories that it needs, relative to the suite file."
    )
    configuration: JsonObject = Field(default_factory=dict, description="Sent with every request.")
    data: dict[Name, JsonValue] = Field(
        default_factory=dict, description="`extensionData` of the case that the task is."
    )
    expects: Names = Field(
        (), description="Ids of checks that it must answer; one that is missing is unavailable."
    )
    checks: Annotated[tuple[DeclaredCheck, ...], Field(max_length=RESULTS)] = Field(
        (), description="Checks by graders of its own, which it must answer by their ids."
    )
    replaces: Annotated[
        tuple[Annotated[Id, BeforeValidator(grader_name)], ...], Field(max_length=RESULTS)
    ] = Field(
        (),
        description="Built-in graders that are left out, by name; `boxeval.commands` is `verify.commands`.",
    )
    verdict_policy: Name | None = Field(
        None,
        description="A verdict policy that it offers. What it recommends then decides, and not the checks.",
    )
    protocol: Dialect = Field(
        "boxeval", description="Whose names it speaks; `sevro` for one that was written for it."
    )
    timeout_ms: Annotated[int, Field(ge=1, le=600_000)] = Field(
        TIMEOUT_MS, description="Milliseconds of one exchange."
    )
    trusted: bool = Field(False, description="There is nothing more to be had: `true` is refused.")

    @property
    def due(self) -> tuple[str, ...]:
        """Ids of the checks that it must answer."""
        return (*self.expects, *(check.id for check in self.checks))


class Negotiated(Record):
    """Who an extension said it is, and what both sides have."""

    id: Name
    version: str
    protocol: str
    capabilities: tuple[str, ...]
    graders: tuple[str, ...]
    verdict_policies: tuple[str, ...]


class ExchangeSeen(Record):
    """One request in a box of its own. The box's standard output is the answer, kept whole up to its cap."""

    method: Method = Field(strict=False)
    request: Sha256 = Field(description="Blob of the request.")
    box: BoxResult


class ExtensionSeen(Record):
    """All that was seen of an extension in one trial. With a fault, `checks` has one with status `error`."""

    sources: Sha256 = Field(description="Over its files, as they were in the box.")
    changed: bool = Field(
        False, description="A file changed while it was asked, so its answer does not count."
    )
    negotiated: Negotiated | None = None
    exchanges: tuple[ExchangeSeen, ...] = ()
    checks: tuple[CheckSeen, ...] = ()
    metrics: tuple[Metric, ...] = ()
    domain_outcomes: tuple[DomainOutcome, ...] = ()
    recommendation: Literal["passed", "failed", "not_assessed"] | None = None
