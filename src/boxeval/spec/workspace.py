"""Where the files come from that a candidate finds."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from boxeval.spec.base import Positive, Record

Command = Annotated[str, StringConstraints(min_length=1, max_length=131_071)]
"""One argument of execve is at most 128 KiB on Linux, with its NUL."""
RelativePath = Annotated[str, StringConstraints(min_length=1, max_length=4096)]


ProgramName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9._-]{0,63}$")]
ProgramText = Annotated[str, StringConstraints(min_length=1)]
PROGRAMS = ".git/fixture-bin"
"""Where a fixture's programs are in the workspace."""


class InlineFile(Record):
    """A file written in the suite itself. `mode` is an octal string such as "0755"."""

    text: str = Field(description="The content, written as UTF-8.")
    mode: Annotated[str, StringConstraints(pattern=r"^0[0-7]{3}$")] = Field(
        "0644", description="Permission bits as an octal string in quotes."
    )


class Commit(Record):
    """One commit of a generated history: files that it writes over those of the commits before."""

    message: Annotated[str, StringConstraints(min_length=1)] = Field(description="At most 4096 bytes.")
    files: Annotated[dict[RelativePath, str | InlineFile], Field(min_length=1)] = Field(
        description="Path to content."
    )


class WorkspaceKind(StrEnum):
    """Where a fixture comes from. All kinds end as a read-only snapshot below an overlay."""

    INLINE = "inline"
    TEMP_COPY = "temp-copy"
    GIT = "git"
    GENERATED = "generated"
    LOCAL = "local"
    ARCHIVE = "archive"


class Workspace(Record):
    """The fixture of a task. Which fields a kind needs and takes is checked in `formats.suite_v2`."""

    kind: WorkspaceKind = Field(strict=False, description="Where the files come from.")
    files: dict[RelativePath, str | InlineFile] | None = Field(
        None,
        description="kind inline: path to content. kinds git and generated: written over the last commit.",
    )
    commits: Annotated[tuple[Commit, ...], Field(max_length=128)] | None = Field(
        None, description="kind generated: the history of branch `main`, the oldest first."
    )
    staged: tuple[str, ...] = Field((), description="kinds git and generated: those of `files` to stage.")
    commit_files: bool = Field(
        False, description="kinds git and generated: make `files` one more commit, instead of changes."
    )
    hooks: dict[str, str] = Field(
        default_factory=dict, description="kinds git and generated: Git hooks by name, as executable files."
    )
    bin: dict[ProgramName, ProgramText] = Field(
        default_factory=dict,
        description="kinds git and generated: programs by name, in `.git/fixture-bin`; first on a candidate's PATH.",
    )
    path: str | None = Field(
        None, description="Directory, archive or repository, relative to the suite file."
    )
    url: str | None = Field(None, description="kind git: repository to fetch from.")
    commit: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")] | None = Field(
        None, description="kind git: full commit id."
    )
    checkout: str | None = Field(None, description="kind git: branch or tag, instead of a commit.")
    history: Literal["full", "none"] | None = Field(
        None,
        description="kind git: the commit with its ancestors (`full`, the default), or its tree as one root commit.",
    )
    excludes: tuple[str, ...] = Field((), description="gitignore-style patterns, left out of the snapshot.")
    write_back: bool = Field(
        False, description="kind local: apply what a passed trial changed to the directory itself."
    )
    setup: tuple[Command, ...] = Field(
        (), description="Shell commands (`sh -e`), run once in a box to complete the fixture."
    )
    size_limit: Positive = Field(256 * 1024 * 1024, description="Bytes; a larger fixture is refused.")

    @property
    def written(self) -> dict[str, Any] | None:
        """What Git writes over the fixture's source, as JSON values; None if that is nothing."""
        if self.kind not in (WorkspaceKind.GIT, WorkspaceKind.GENERATED):
            return None
        names = {"commits", "files", "staged", "commit_files", "hooks", "bin"}
        if self.commits is None and not any(getattr(self, name) for name in names):
            return None
        return self.model_dump(mode="json", include=names)
