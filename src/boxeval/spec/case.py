"""A sevro case: one prompt, the files that it is about, and how the answer is graded (contract G57)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from boxeval.spec.base import Id, Record
from boxeval.spec.checks import MAX_CHECKS, Check, EvidenceName
from boxeval.spec.workspace import Commit, InlineFile, ProgramName, ProgramText, RelativePath

Text = Annotated[str, StringConstraints(min_length=1)]


class CaseFixture(Record):
    """What the candidate finds: inline `files`, a `generated` history, or a repository by `sourceRef`."""

    kind: Literal["inline", "generated", "repository"] | None = Field(
        None, description="`generated`: a history that Git writes. The others go without saying."
    )
    source_ref: Text | None = Field(None, description="A repository, by its name in the source map.")
    commits: Annotated[tuple[Commit, ...], Field(max_length=128)] | None = Field(
        None, description="kind generated: the history of branch `main`, the oldest first."
    )
    files: dict[RelativePath, str | InlineFile] | None = Field(
        None,
        description="Path to content; over a history or a repository, what differs from its last commit.",
    )
    staged: tuple[str, ...] = Field((), description="Those of `files` that are staged.")
    commit_files: bool = Field(False, description="Make `files` one more commit.")
    hooks: dict[str, str] = Field(default_factory=dict, description="Git hooks by name.")
    bin: dict[ProgramName, ProgramText] = Field(
        default_factory=dict,
        description="Programs by name, for the candidate. They need a history or a repository.",
    )


class Case(Record):
    """One case file."""

    id: Id = Field(description="Stable name of the case in results.")
    prompt: Text = Field(description="What the candidate is asked.")
    follow_up_prompt: Text | None = Field(
        None, description="What it is asked next, in the same session of an agent that can go on with one."
    )
    fixture: CaseFixture = Field(description="The files that it finds.")
    fixture_configuration: Literal["inert"] | None = Field(
        None, description="`inert`: the fixture may have an agent's own configuration, which is not heeded."
    )
    checks: Annotated[tuple[Check, ...], Field(max_length=MAX_CHECKS)] = Field(
        (), description="Without any the case is not assessed."
    )
    required_evidence: tuple[EvidenceName, ...] = Field(
        (), description="Observations that must be complete, or the case is not assessed."
    )
