"""One live run of an identity in a results root (contract G74).

The lock is the kernel's, on a file that says who holds it; a process that dies lets go of it without a word, so a
record under a lock that can be had is that of a dead owner. On a file system that machines share a lock of
another machine may not be seen, so the record of another host is believed.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from boxeval.errors import StorageError, UsageError
from boxeval.receipts.ledger import utc_now
from boxeval.receipts.storage import publish
from boxeval.rules.identity import identity
from boxeval.sandbox.ownership import Owner
from boxeval.spec.plan import Plan

OWNERS = ".boxeval-owners"
INTERRUPTED = "interrupted.json"
FORMAT = "boxeval.owner/1"


@contextmanager
def owned(results_root: Path, plan: Plan, owner: Owner, note: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of a plan's identity. `UsageError` while an equivalent run is alive.

    A run whose owner died is marked with `interrupted.json`; nothing of it is removed.
    """
    key = identity({"tasks": [task.identity for task in plan.tasks]})
    place = results_root / OWNERS / f"{key}.json"
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StorageError(f"{place.parent}: cannot be written: {error.strerror}") from error
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"an equivalent run is alive: {_told(_record(file.read()))}") from None
        before = _record(file.read())
        if before and before.get("host") != socket.gethostname():
            raise UsageError(
                f"an equivalent run may be alive on another host: {_told(before)}; if it is not, remove {place}"
            )
        if before:
            _mark(results_root, before, note)
        _write(file.fileno(), _told_by(owner, plan.run_id))
        try:
            yield
        finally:
            _write(file.fileno(), {})


def _told_by(owner: Owner, run_id: str) -> dict[str, Any]:
    pid, start_time, *_ = owner.controller.split(".")
    return {
        "format": FORMAT,
        "runId": run_id,
        "pid": int(pid),
        "startTime": start_time,
        "boot": owner.boot,
        "host": socket.gethostname(),
        "since": utc_now(),
    }


def _mark(results_root: Path, owner: dict[str, Any], note: Callable[[str], None]) -> None:
    run_id = str(owner.get("runId"))
    directory = results_root / run_id
    if "/" in run_id or not directory.is_dir():
        return
    content = {"format": "boxeval.interrupted/1", "owner": owner, "foundAt": datetime.now(UTC).isoformat()}
    try:
        publish(directory / INTERRUPTED, json.dumps(content, indent=2).encode() + b"\n")
    except FileExistsError:
        return
    except OSError as error:
        raise StorageError(f"{directory}: cannot be written: {error.strerror}") from error
    note(f"run {run_id} has lost its owner: it is marked as interrupted, and its files are kept")


def _write(descriptor: int, record: dict[str, Any]) -> None:
    data = json.dumps(record).encode() if record else b""
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, data, 0)
    os.fsync(descriptor)


def _record(data: bytes) -> dict[str, Any]:
    """What an owner wrote; empty for nothing, or for what a crash left half written."""
    try:
        record = json.loads(data or b"{}")
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def _told(record: dict[str, Any]) -> str:
    known = (("run", "runId"), ("pid", "pid"), ("host", "host"), ("since", "since"))
    return ", ".join(f"{word} {record[name]}" for word, name in known if name in record) or "just starting"
