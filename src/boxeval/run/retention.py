"""Which runs of this machine are kept: old ones go when somebody says how many, or how old."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from boxeval.errors import StorageError, UsageError
from boxeval.receipts.canonical import MAX_BYTES, MalformedError, read
from boxeval.receipts.ledger import LEDGER, PLAN, lock
from boxeval.receipts.storage import read_regular
from boxeval.receipts.trust import instant
from boxeval.run.remember import forget
from boxeval.settings import Settings
from boxeval.spec.plan import Plan


@dataclass(frozen=True, slots=True)
class OldRun:
    """A run that goes, and how much room it takes."""

    run_id: str
    directory: Path
    size_bytes: int


def prune(
    settings: Settings, *, keep: int | None, older_than_days: int | None, dry: bool = False
) -> tuple[OldRun, ...]:
    """Remove runs in the runs directory, the oldest first; return what was, or with `dry` would be, removed.

    The newest `keep` stay, and those that are younger; with both, a run goes only if both let it. A run that is under
    way stays, and so does everything that is not a run. `UsageError` if neither is said.
    """
    if keep is None and older_than_days is None:
        raise UsageError("say which runs may go: --keep N, --older-than DAYS, or both")
    oldest = datetime.now(UTC) - timedelta(days=older_than_days or 0)
    runs = sorted(_runs(settings.runs_dir), key=lambda run: (run[0].created_at, run[0].run_id))
    candidates = runs[: max(0, len(runs) - (keep or 0))]
    gone = []
    for plan, directory in candidates:
        if instant(plan.created_at) > oldest:
            continue
        old = OldRun(plan.run_id, directory, _size(directory))
        if dry or _remove(directory):
            gone.append(old)
            if not dry:
                forget(settings, plan.run_id)
    return tuple(gone)


def _runs(place: Path) -> Iterator[tuple[Plan, Path]]:
    for directory in place.iterdir() if place.is_dir() else ():
        try:
            plan = read(Plan, read_regular(directory / PLAN, MAX_BYTES))
            instant(plan.created_at)
        except (OSError, MalformedError, ValueError):
            continue
        if not directory.is_symlink() and (directory / LEDGER).is_file():
            yield plan, directory


def _remove(directory: Path) -> bool:
    """Remove a run unless somebody writes it."""
    try:
        descriptor = os.open(directory / LEDGER, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            lock(descriptor, directory)
            # The plan goes first: a half-removed run is none.
            (directory / PLAN).unlink()
            shutil.rmtree(directory)
        finally:
            os.close(descriptor)
    except UsageError:
        return False
    except OSError as error:
        raise StorageError(f"{directory}: cannot be removed: {error.strerror or error}") from error
    return True


def _size(directory: Path) -> int:
    return sum(path.lstat().st_size for path in directory.rglob("*") if not path.is_dir())
