"""Runtime configuration of case runs: what of the operator's machine a candidate may use (contract G75)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from boxeval.spec.base import Record
from boxeval.spec.host_options import ArtifactName, HomePath

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
Value = Annotated[str, StringConstraints(max_length=8192)]
HostPath = Annotated[str, StringConstraints(min_length=1, max_length=4096)]
Roots = Annotated[tuple[HostPath, ...], Field(max_length=64)]


class RuntimeEnvironment(Record):
    """Variables of candidates, checks and judges. None may be a credential."""

    inherit: Annotated[tuple[Name, ...], Field(max_length=64)] = Field(
        (), description="Names that are taken from boxeval's own environment; each must be there."
    )
    set: Annotated[dict[Name, Value], Field(max_length=64)] = Field(
        default_factory=dict, description="Values; they beat inherited ones."
    )


class RuntimeFilesystem(Record):
    """Directories of the host that boxes may read, at the same path."""

    read_only_roots: Roots = Field((), description="They must exist.")
    optional_read_only_roots: Roots = Field((), description="Left out where they do not exist.")


class Role(StrEnum):
    """Whose boxes get a seed."""

    CANDIDATE = "candidate"
    CHECKS = "checks"
    SEMANTIC = "semantic"


class Seed(Record):
    """A directory of the host that is copied into the private runtime directory of boxes."""

    source: HostPath
    target: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,63}$")]
    roles: tuple[Annotated[Role, Field(strict=False)], ...] = Field(
        (Role.CANDIDATE, Role.CHECKS), description="A judge gets it only if it says so."
    )


class RuntimeFiles(Record):
    """What a box finds in its private runtime directory, which it may write."""

    seed_directories: Annotated[tuple[Seed, ...], Field(max_length=16)] = ()


class RuntimeHooks(Record):
    """What may act in the candidate's box beside it."""

    native_goal: bool = Field(False, description="The agent's own goal mode. No host has it here.")
    plugins: Annotated[tuple[str, ...], Field(max_length=64)] = Field(
        (), description="Plugins whose hooks may run. A case installs none."
    )


class RuntimeConfiguration(Record):
    """One file. `~/` is the operator's home; other paths are relative to the file."""

    format: Literal["boxeval.runtime.v1", "sevro.runtime.v1"]
    environment: RuntimeEnvironment = RuntimeEnvironment()
    filesystem: RuntimeFilesystem = RuntimeFilesystem()
    runtime: RuntimeFiles = RuntimeFiles()
    hooks: RuntimeHooks = RuntimeHooks()
    native_transcripts: bool = Field(
        False, description="Show graders the candidate's own session files, read-only."
    )
    candidate_artifacts: Annotated[dict[ArtifactName, HomePath], Field(max_length=32)] = Field(
        default_factory=dict,
        description="Subtrees of the candidate's private home that graders may read, by name.",
    )
