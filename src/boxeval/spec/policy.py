"""A policy: every isolation setting and limit of a box, frozen and typed. Files live in `policies/`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from boxeval.spec.base import Id, Natural, Positive, Record
from boxeval.spec.models import TrialBudget

AbsolutePath = Annotated[str, StringConstraints(pattern=r"^/[^\x00]*$", max_length=4096)]


class ReadOnlyMount(Record):
    """A host directory or file shown read-only in every box. Nothing of the host is ever mounted writable."""

    source: AbsolutePath = Field(description="On the host; it must exist.")
    target: AbsolutePath = Field(description="In the box.")


class Limits(Record):
    """Hard limits of one box. MiB means 1,048,576 bytes."""

    memory_mib: Positive = Field(1024, description="Memory, the tmpfs mounts below included.")
    swap_mib: Natural = Field(0, description="Swap beside the memory.")
    cpus: Annotated[float, Field(gt=0, le=512)] = Field(1.0, description="Processor time per wall time.")
    pids: Positive = Field(256, description="Processes and threads.")
    open_files: Positive = Field(1024, description="Open files of a process.")
    file_size_mib: Positive = Field(256, description="Size of one file.")
    core_mib: Natural = Field(0, description="Size of a core dump.")
    workspace_mib: Positive = Field(512, description="What may be written to the workspace.")
    workspace_inodes: Positive = Field(100_000, description="Files that may be made in the workspace.")
    home_mib: Positive = Field(64, description="The private home directory.")
    tmp_mib: Positive = Field(64, description="`/tmp`.")
    shm_mib: Positive = Field(16, description="`/dev/shm`.")
    output_kib: Positive = Field(1024, description="Kept of each output stream, half head and half tail.")


class CollectCaps(Record):
    """Bounds on what is read back from a workspace. Past one of them there is no evidence to grade."""

    bytes: Positive = Field(256 * 1024 * 1024, description="Content of all changed files.")
    members: Positive = Field(100_000, description="Changed paths.")
    depth: Annotated[int, Field(ge=1, le=256)] = Field(128, description="Nested directories.")
    name_bytes: Positive = Field(255, description="One name.")
    path_bytes: Positive = Field(4096, description="One path.")
    time_ms: Positive = Field(
        300_000, description="Time to read it all; past it the engine is at fault, not the candidate."
    )


class Policy(Record):
    """How boxes are shut. Fields with one allowed value are promises, written where a reviewer looks."""

    version: Literal[1] = Field(description="Version of the policy format.")
    id: Id = Field(description="Name of the policy in reports.")
    description: str = Field("", description="One line for people.")
    uid: Annotated[int, Field(ge=1, le=65_533)] = Field(
        10001, description="User of every process; never root."
    )
    gid: Annotated[int, Field(ge=1, le=65_533)] = Field(10001, description="Group of every process.")
    network: Literal["none", "allowlist"] = Field(
        "none",
        description="Loopback only; with `allowlist` the candidate's box has a proxy there, which leads to `allow`.",
    )
    allow: Annotated[tuple[str, ...], Field(max_length=256)] = Field(
        (),
        description="Hosts, `*.` and a host, addresses and CIDRs, each with `:PORT` if not 80 and 443. "
        "What is not public must be named by its address.",
    )
    capabilities: tuple[()] = Field((), description="All are dropped.")
    no_new_privileges: Literal[True] = Field(True, description="No program gains rights by being started.")
    seccomp: Literal["boxeval", "engine-default"] = Field(
        "boxeval",
        description="The filter of system calls: boxeval's own, which refuses what it does not name, or the engine's.",
    )
    read_only_root: Literal[True] = Field(True, description="The image's files cannot be changed.")
    runtime: Literal["runc", "crun", "runsc"] | None = Field(
        None, description="What the engine starts boxes with; its default unless named here."
    )
    hermetic: bool = Field(
        True, description="Refuses a run with BOXEVAL_HERMETIC=0. Every run is hermetic without it."
    )
    limits: Limits = Field(Limits(), description="Hard limits of one box.")
    collect: CollectCaps = Field(CollectCaps(), description="Bounds on what is read back.")
    budget: TrialBudget = Field(
        TrialBudget(), description="What a trial may use of its model; no limit by default."
    )
    mounts: tuple[ReadOnlyMount, ...] = Field((), description="Host paths that boxes may read.")
