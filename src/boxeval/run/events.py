"""What a run asks for, and what it tells while it goes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from boxeval.run.case_choices import CaseChoices
from boxeval.spec.plan import Plan, PlannedTrial
from boxeval.spec.trial import Trial


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One `boxeval run`, as the command line understood it. Empty tuples select everything.

    With `case`, `suite` is the case file and nothing else of a suite's selection is used. With `idle` every candidate
    does nothing.
    """

    suite: Path
    out: Path | None = None
    jobs: int | None = None
    targets: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    smoke: bool = False
    model: str | None = None
    judge: str | None = None
    repeats: int | None = None
    max_failures: int | None = None
    key_file: Path | None = None
    allow_network: bool = False
    case: CaseChoices | None = None
    keyring_file: Path | None = None
    record: Path | None = None
    idle: bool = False


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended. The numbers are in the ledger; `checkpoint` is the line to pin elsewhere, None for a run
    that a second signal left open.
    """

    run_id: str
    directory: Path
    checkpoint: str | None
    interrupted_by: int | None = None
    left_behind: tuple[str, ...] = ()


class Watcher(Protocol):
    """Told of progress from several threads; must not raise and must not wait."""

    def note(self, text: str) -> None:
        """One line of what is being prepared."""

    def planned(self, plan: Plan, directory: Path, jobs: int) -> None:
        """The plan stands; trials start now."""

    def started(self, trial: PlannedTrial, step: str) -> None:
        """A trial entered a step: stage, run, settle, collect, enforce, grade, seal."""

    def finished(self, trial: Trial) -> None:
        """A trial's receipt is durable."""
