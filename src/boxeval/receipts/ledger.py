"""Writing a run: one signed line a trial, durable before the next step, never torn by our own doing.

plan.json       canonical bytes of the plan, written first
ledger.jsonl    opened, one line a trial, closed; if it was taken up again: resumed, more trials, closed
checkpoint      one line to pin elsewhere, written last
blobs/          evidence, by digest

The writer holds a lock on ledger.jsonl, which ends with its process.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from boxeval.errors import BoxevalError, StorageError, UsageError
from boxeval.receipts import merkle
from boxeval.receipts.blobs import BlobStore
from boxeval.receipts.canonical import MAX_BYTES, MalformedError, canonical, digest
from boxeval.receipts.envelope import line_hash, seal
from boxeval.receipts.keys import SigningKey
from boxeval.receipts.storage import replace, sync_directory, write_new
from boxeval.spec.plan import Plan
from boxeval.spec.receipt import Body, Closed, Opened, Receipt, Resumed, Sealed
from boxeval.spec.trial import Trial

PLAN = "plan.json"
LEDGER = "ledger.jsonl"
CHECKPOINT = "checkpoint"
BLOBS = "blobs"
NO_LINE = "0" * 64


class UnsealableError(StorageError):
    """The record itself is at fault: it has no canonical form, or is too large for a line. Nothing was written."""


def utc_now() -> str:
    """The time as ledgers write it: RFC 3339, UTC, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def checkpoint_line(closed: Closed, closing_hash: str, keyid: str) -> str:
    """What a witness pins: it fixes every byte of the ledger, and so of the plan and the evidence."""
    return f"boxeval checkpoint 1 {closed.run_id} {closed.count} {closed.root} {closing_hash} {keyid}"


def lock(descriptor: int, directory: Path) -> None:
    """Be the one writer of a ledger until the descriptor is closed. `UsageError` if somebody else is."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(f"{directory}: another boxeval is running this run; wait for it or end it") from None
    except OSError as error:
        raise StorageError(f"{directory / LEDGER}: cannot be locked: {error.strerror}") from error


class Ledger:
    """The only writer of one run's directory. Threads may append at the same time."""

    def __init__(
        self, directory: Path, plan: Plan, key: SigningKey, descriptor: int, now: Callable[[], str]
    ) -> None:
        """Use `Ledger.create` or `Ledger.resume`. Takes the descriptor over."""
        self.directory = directory
        self.blobs = BlobStore(directory / BLOBS)
        self._run_id = plan.run_id
        self._plan = digest(plan)
        self._key = key
        self._descriptor = descriptor
        self._now = now
        self._lock = threading.Lock()
        self._lines: list[tuple[int, str]] = []
        """Where each line ends, and its hash: one step from one state to the next, whatever interrupts."""
        self._sealed = 0
        self._over: str | None = None

    @classmethod
    def create(cls, directory: Path, plan: Plan, key: SigningKey, now: Callable[[], str] = utc_now) -> Ledger:
        """Write the plan and the opening line into a new or empty directory.

        `UsageError` if the directory is in use, `StorageError` if it cannot be written.
        """
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if any(directory.iterdir()):
                raise UsageError(f"{directory}: is not empty; a run wants a directory of its own")
            write_new(directory / PLAN, canonical(plan))
            (directory / BLOBS).mkdir(mode=0o700)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            descriptor = os.open(directory / LEDGER, flags, 0o600)
            lock(descriptor, directory)
        except (FileExistsError, NotADirectoryError):
            raise UsageError(f"{directory}: is in use; a run wants a directory of its own") from None
        except OSError as error:
            raise StorageError(f"{directory}: run cannot be written: {error.strerror or error}") from error
        except MalformedError as error:
            raise UsageError(f"plan {error}") from None
        ledger = cls(directory, plan, key, descriptor, now)
        opened = Opened(run_id=plan.run_id, plan=ledger._plan, trials=len(plan.trials), at=now())
        with ledger._lock:
            ledger._append(opened)
        try:
            sync_directory(directory)
        except OSError as error:
            raise StorageError(f"{directory}: run cannot be written: {error.strerror or error}") from error
        return ledger

    @classmethod
    def resume(
        cls,
        directory: Path,
        plan: Plan,
        key: SigningKey,
        descriptor: int,
        lines: Sequence[tuple[int, str]],
        now: Callable[[], str] = utc_now,
    ) -> Ledger:
        """Go on behind the verified `lines` (where each ends, and its hash) of a locked ledger.

        What stands behind them is the torn line of a writer that died. The record of it is written over it, so that
        whenever this is interrupted a torn line is all that is left. `StorageError` if the record cannot be written.
        """
        ledger = cls(directory, plan, key, descriptor, now)
        ledger._lines = list(lines)
        try:
            torn_bytes, torn_sha256 = _rest(descriptor, ledger._end)
            with ledger._lock:
                ledger._append(
                    Resumed(
                        run_id=plan.run_id,
                        plan=ledger._plan,
                        at=now(),
                        torn_bytes=torn_bytes,
                        torn_sha256=torn_sha256 if torn_bytes else None,
                    )
                )
                os.ftruncate(descriptor, ledger._end)
                os.fsync(descriptor)
        except OSError as error:
            raise StorageError(
                f"{directory / LEDGER}: cannot be written: {error.strerror or error}"
            ) from error
        return ledger

    @property
    def _end(self) -> int:
        return self._lines[-1][0] if self._lines else 0

    @property
    def sealed(self) -> int:
        """How many trials are durable."""
        return self._sealed

    def append(self, trial: Trial) -> None:
        """Seal a trial; durable on return. On `StorageError` nothing of it is in the ledger.

        `UnsealableError` is about this trial alone: others can be appended.
        """
        self._keep_evidence()
        with self._lock:
            self._append(Sealed(run_id=self._run_id, plan=self._plan, trial=trial))
            self._sealed += 1

    def close(self, interrupted_by: str | None = None) -> str:
        """Write the closing line and the checkpoint; return the checkpoint, without its newline."""
        self._keep_evidence()
        with self._lock:
            closed = Closed(
                run_id=self._run_id,
                plan=self._plan,
                count=len(self._lines),
                root=merkle.root([bytes.fromhex(line) for _, line in self._lines]),
                at=self._now(),
                interrupted_by=interrupted_by,
            )
            self._append(closed)
            self._over = "it is closed"
            line = checkpoint_line(closed, self._lines[-1][1], self._key.keyid)
            try:
                write_checkpoint(self.directory, line)
            except OSError as error:
                raise StorageError(self._failure(CHECKPOINT, error.strerror or str(error))) from error
        self.release()
        return line

    def release(self) -> None:
        """Let go of the file and its lock. Nothing can be added any more; safe to call twice."""
        with self._lock:
            self._over = self._over or "it was let go"
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1

    def _keep_evidence(self) -> None:
        try:
            self.blobs.flush()
        except StorageError as error:
            raise StorageError(f"{error}; {self._sealed} trials are safely sealed") from error

    def _append(self, body: Body) -> None:
        if self._over:
            raise BoxevalError(f"{self.directory / LEDGER}: nothing can be added: {self._over}")
        previous = self._lines[-1][1] if self._lines else NO_LINE
        try:
            line = seal(Receipt(index=len(self._lines), previous=previous, body=body), self._key)
        except MalformedError as error:
            raise UnsealableError(self._failure(LEDGER, str(error))) from None
        if len(line) > MAX_BYTES:
            raise UnsealableError(self._failure(LEDGER, f"a receipt is larger than {MAX_BYTES} bytes"))
        end = self._end + len(line) + 1
        try:
            self._write(line + b"\n")
            self._lines.append((end, line_hash(line)))
        except OSError as error:
            self._restore()
            raise StorageError(self._failure(LEDGER, error.strerror or str(error))) from error
        except BaseException:
            self._restore()
            raise

    def _write(self, data: bytes) -> None:
        written = os.pwrite(self._descriptor, data, self._end)
        if written != len(data):
            raise OSError(f"only {written} of {len(data)} bytes were written")
        try:
            os.fsync(self._descriptor)
        except OSError:
            # What the disk holds is unknown from here on, whatever a later fsync says.
            self._over = "the disk failed"
            raise

    def _restore(self) -> None:
        """Cut off what a failed append left. If even that fails, nothing is ever written behind it."""
        try:
            os.ftruncate(self._descriptor, self._end)
        except OSError:
            self._over = "its last line is torn"

    def _failure(self, name: str, reason: str) -> str:
        return (
            f"{self.directory / name}: cannot be written: {reason}; {self._sealed} trials are safely sealed"
        )


def write_checkpoint(directory: Path, line: str) -> None:
    """Write the checkpoint file, or renew it, in one step."""
    replace(directory / CHECKPOINT, f"{line}\n".encode())


def _rest(descriptor: int, start: int) -> tuple[int, str]:
    """Length and SHA-256 of what a file holds from `start` on."""
    sha256, place = hashlib.sha256(), start
    while piece := os.pread(descriptor, 1 << 20, place):
        sha256.update(piece)
        place += len(piece)
    return place - start, sha256.hexdigest()
