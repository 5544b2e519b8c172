"""A policy: every isolation setting and limit of a box, frozen and typed. Files live in `policies/`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from boxeval.spec.base import Id, Natural, Positive, Record

AbsolutePath = Annotated[str, StringConstraints(pattern=r"^/[^\x00]*$", max_length=4096)]


class ReadOnlyMount(Record):
    """A host directory or file shown read-only in every box. Nothing of the host is ever mounted writable."""

    source: AbsolutePath
    target: AbsolutePath


class Limits(Record):
    """Hard limits of one box. MiB means 1,048,576 bytes."""

    memory_mib: Positive = 1024
    swap_mib: Natural = 0
    cpus: Annotated[float, Field(gt=0, le=512)] = 1.0
    pids: Positive = 256
    open_files: Positive = 1024
    file_size_mib: Positive = 256
    core_mib: Natural = 0
    workspace_mib: Positive = 512
    workspace_inodes: Positive = 100_000
    home_mib: Positive = 64
    tmp_mib: Positive = 64
    shm_mib: Positive = 16
    output_kib: Positive = Field(1024, description="Kept of each output stream, half head and half tail.")


class CollectCaps(Record):
    """Bounds on what is read back from a workspace. Past one of them there is no evidence to grade."""

    bytes: Positive = 256 * 1024 * 1024
    members: Positive = 100_000
    depth: Positive = 128
    name_bytes: Positive = 255
    path_bytes: Positive = 4096
    time_ms: Positive = 60_000


class Policy(Record):
    """How boxes are shut. Fields with one allowed value are promises, written where a reviewer looks."""

    version: Literal[1]
    id: Id
    description: str = ""
    uid: Annotated[int, Field(ge=1, le=65_533)] = 10001
    gid: Annotated[int, Field(ge=1, le=65_533)] = 10001
    network: Literal["none"] = "none"
    capabilities: tuple[()] = ()
    no_new_privileges: Literal[True] = True
    seccomp: Literal["engine-default"] = "engine-default"
    read_only_root: Literal[True] = True
    hermetic: bool = Field(
        True, description="Refuses a run with BOXEVAL_HERMETIC=0. Every run is hermetic without it."
    )
    limits: Limits = Limits()
    collect: CollectCaps = CollectCaps()
    mounts: tuple[ReadOnlyMount, ...] = ()
