"""What a run may use up: money as the suite says, and disk as the machine has."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from boxeval.errors import StorageError
from boxeval.spec.policy import Policy
from boxeval.spec.trial import Trial

MIB = 1024 * 1024
RESERVE_BYTES = 64 * MIB
"""Beside what trials leave: ledger, model traffic, outputs."""
ENGINE_BYTES = 256 * MIB
"""Where the engine keeps layers and fixtures."""


class Budget:
    """Counts what sealed trials cost and looks at the disk. Safe to use from several threads."""

    def __init__(self, directory: Path, policies: Mapping[str, Policy], max_cost_usd: float | None) -> None:
        self._directory, self._policies, self._max_cost_usd = directory, policies, max_cost_usd
        self._cost_usd = 0.0
        self._lock = threading.Lock()

    def take(self, trials: Iterable[Trial]) -> None:
        """Count the measured costs of sealed trials, void ones too: they are spent."""
        with self._lock:
            for trial in trials:
                traffic = trial.observations.traffic
                self._cost_usd += (traffic.cost_usd or 0.0) if traffic else 0.0

    def exhausted(self, policy: str) -> str | None:
        """Why a trial under a policy may not be started, if that is so."""
        limit = self._max_cost_usd
        if limit is not None and self._cost_usd >= limit:
            return f"matrix.maxCostUsd {limit} is spent"
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
