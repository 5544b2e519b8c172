"""Run a suite on the real engine from inside a test."""

from __future__ import annotations

import textwrap
from pathlib import Path

from boxeval.graders.extension_again import extension_fault
from boxeval.receipts.trust import Trust
from boxeval.receipts.verify import VerifiedRun, verify
from boxeval.run.controller import run_suite
from boxeval.run.events import RunEnd, RunRequest
from boxeval.sandbox.engine import connect
from boxeval.sandbox.ownership import Owner
from boxeval.sandbox.sweep import clean
from boxeval.settings import Settings, load_settings
from boxeval.spec.plan import Plan, PlannedTrial
from boxeval.spec.trial import Trial

SMALL = """\
version: 1
id: small
hermetic: false
limits:
  {memoryMib: 128, pids: 64, fileSizeMib: 8, workspaceMib: 16, workspaceInodes: 2000, homeMib: 4, tmpMib: 4, shmMib: 1}
collect: {bytes: 4000000}
"""
HEAD = """\
version: 2
suite: {id: test, title: Test, visibility: local}
defaults: {policy: small.yaml, timeoutMs: 30000}
matrix: {targets: [{id: local}]}
"""


class Silent:
    """A watcher that only remembers."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.trials: list[Trial] = []
        self.steps: list[tuple[str, str]] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def planned(self, plan: Plan, directory: Path, jobs: int) -> None:
        self.plan, self.directory, self.jobs = plan, directory, jobs

    def started(self, trial: PlannedTrial, step: str) -> None:
        self.steps.append((trial.task, step))

    def finished(self, trial: Trial) -> None:
        self.trials.append(trial)


def write_suite(directory: Path, text: str, head: str = HEAD) -> Path:
    """Write a suite and the small policy; `text` holds what comes after the head."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "small.yaml").write_text(SMALL)
    place = directory / "suite.yaml"
    place.write_text(head + textwrap.dedent(text))
    return place


def loosen(directory: Path, changes: dict[str, str]) -> None:
    """Replace texts of the small policy that `write_suite` has put there."""
    policy = directory / "small.yaml"
    text = policy.read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    policy.write_text(text)


def run(
    suite: Path, settings: Settings, watcher: Silent | None = None, **request: object
) -> tuple[RunEnd, VerifiedRun]:
    """Run a suite and verify it with this home's keys."""
    end = run_suite(RunRequest(suite, **request), watcher or Silent(), settings)  # type: ignore[arg-type]
    return end, verify(end.directory, Trust.local(settings), reread=extension_fault)


def forget(settings: Settings) -> None:
    """Remove the cache volumes of a test's home."""
    engine = connect()
    try:
        clean(engine, Owner.here(settings.data_dir), cache=True)
    finally:
        engine.close()


def settings_in(directory: Path, cache: Path, **environ: str) -> Settings:
    """Settings of a home below `directory`, with the cache that all tests share."""
    return load_settings({"BOXEVAL_HOME": str(directory), "BOXEVAL_CACHE_DIR": str(cache), **environ})
