"""Taking up a run that ended early: lock it, verify it, and say what is still to do, before anything is changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from boxeval.errors import IncompleteError, TamperError, UnreadableError, UsageError
from boxeval.receipts.evidence import referenced_blobs
from boxeval.receipts.keys import SigningKey
from boxeval.receipts.ledger import CHECKPOINT, LEDGER, PLAN, Ledger, lock, utc_now, write_checkpoint
from boxeval.receipts.storage import DRAFT
from boxeval.receipts.trust import SHOWN_DIGITS, Trust
from boxeval.receipts.verify import verify_lines
from boxeval.rules.attempts import by_trial, unsettled
from boxeval.spec.plan import PlannedTrial
from boxeval.spec.receipt import Closed


class Recovery:
    """A run that nobody else can write to while this is open; a context manager.

    `run` is what was verified, `remaining` what a resumed run has to run, `attempts` how often each trial was tried.
    """

    def __init__(self, directory: Path, trust: Trust) -> None:
        """Lock and verify. Changes nothing.

        `UsageError` if another process is running it; `TamperError`, `IncompleteError` and `UnreadableError` as
        `verify` raises them, `TamperError` too for a run that was closed and has lost lines since.
        """
        self.directory = directory
        self._descriptor = _open(directory)
        try:
            lock(self._descriptor, directory)
            self.run, self._lines = verify_lines(directory, trust)
            self._refuse_cut()
        except BaseException:
            self.close()
            raise
        self.remaining: tuple[PlannedTrial, ...] = unsettled(self.run.plan, self.run.trials)
        self.attempts = {name: len(made) for name, made in by_trial(self.run.trials).items()}

    def __enter__(self) -> Recovery:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def times(self) -> int:
        """How often the run was taken up before."""
        return len(self.run.resumed_at)

    @property
    def is_over(self) -> bool:
        """Whether there is nothing to run and nothing to close."""
        return not self.remaining and isinstance(self._lines[-1].receipt.body, Closed)

    @property
    def owes_changes(self) -> bool:
        """Whether its controller may have died before a passed trial's changes were written back."""
        return not self.is_over and any(task.workspace.write_back for task in self.run.plan.tasks)

    def renew_checkpoint(self) -> str:
        """Write the checkpoint of a run that is over, if it has none or an old one; return it."""
        line = self.run.checkpoint
        if line is None:
            raise ValueError("the run is not over")
        if self.run.problems:
            write_checkpoint(self.directory, line)
        return line

    def go_on(self, key: SigningKey, now: Callable[[], str] = utc_now) -> Ledger:
        """Cut off a torn line, seal a record of that, and return the ledger to append to.

        `UsageError` for another key than the run's: a line by a second one would make all of it worthless.
        """
        if key.keyid != self.run.keyid:
            raise UsageError(
                f"{self.directory}: is sealed with key {self.run.keyid[:SHOWN_DIGITS]}, and no other goes on with it"
            )
        for draft in self.directory.glob(f"{DRAFT}*"):
            draft.unlink()
        self.run.blobs.mend(
            {sha256 for trial in self.run.trials for _, sha256 in referenced_blobs(trial.observations)}
        )
        lines = [(line.end, line.hash) for line in self._lines]
        descriptor, self._descriptor = self._descriptor, -1
        return Ledger.resume(self.directory, self.run.plan, key, descriptor, lines, now)

    def close(self) -> None:
        """Let others have it, unless `go_on` was called: then the ledger holds the lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _refuse_cut(self) -> None:
        closed = any(isinstance(line.receipt.body, Closed) for line in self._lines)
        if not closed and (self.directory / CHECKPOINT).exists():
            raise TamperError(
                f"{self.directory / CHECKPOINT}: says that the run was closed, but the ledger does not: lines were "
                "removed; put the whole ledger back, or start a new run"
            )


def _open(directory: Path) -> int:
    try:
        return os.open(directory / LEDGER, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        if (directory / PLAN).exists():
            raise IncompleteError(
                f"{directory}: ended before its first line: nothing ran; start it anew"
            ) from None
        raise UnreadableError(f"{directory}: holds no run: neither {PLAN} nor {LEDGER}") from None
    except OSError as error:
        raise UnreadableError(f"{directory / LEDGER}: cannot be opened: {error.strerror}") from None
