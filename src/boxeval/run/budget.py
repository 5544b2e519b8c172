"""What a run may use up: of its models as the suite says, and of the disk as the machine has."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from boxeval.errors import StorageError
from boxeval.gateway.purse import Purse
from boxeval.spec.policy import Policy

MIB = 1024 * 1024
RESERVE_BYTES = 64 * MIB
"""Beside what trials leave: ledger, model traffic, outputs."""
ENGINE_BYTES = 256 * MIB
"""Where the engine keeps layers and fixtures."""


class Budget:
    """Looks at the run's purse and at the disk. Safe to use from several threads."""

    def __init__(self, directory: Path, policies: Mapping[str, Policy], purse: Purse) -> None:
        self._directory, self._policies, self._purse = directory, policies, purse

    def exhausted(self, policy: str) -> str | None:
        """Why a trial under a policy may not be started, if that is so."""
        if fault := self._purse.used_up():
            return str(fault)
        need, free = evidence_bytes(1, [self._policies[policy]]), _free_bytes(self._directory)
        if free < need:
            return f"the disk of {self._directory} has {free // MIB} MiB left, and a trial may leave {need // MIB}"
        return None


def evidence_bytes(jobs: int, policies: Iterable[Policy]) -> int:
    """What so many trials at once may leave in a run's directory, at most."""
    return RESERVE_BYTES + jobs * max((policy.collect.bytes for policy in policies), default=0)


def require_disk(directory: Path, jobs: int, policies: Iterable[Policy], engine_root: str) -> None:
    """Refuse to start a run for whose first trials there is no room. `StorageError` names the place and both sizes."""
    need = evidence_bytes(jobs, policies)
    _require(directory, need, f"{jobs} trials at a time may leave")
    if engine_root and Path(engine_root).is_dir():
        _require(Path(engine_root), ENGINE_BYTES, "the engine needs")


def _require(directory: Path, need: int, why: str) -> None:
    free = _free_bytes(directory)
    if free < need:
        raise StorageError(
            f"{directory}: {free // MIB} MiB are free, but {why} {need // MIB} MiB; make room (boxeval runs prune, "
            "boxeval images prune), or lower --jobs or collect.bytes of the policy"
        )


def _free_bytes(directory: Path) -> int:
    """Free space for this user where a directory is or will be."""
    place = directory.absolute()
    while not place.exists():
        place = place.parent
    try:
        return shutil.disk_usage(place).free
    except OSError as error:
        raise StorageError(f"{place}: cannot be looked at: {error.strerror}") from error
