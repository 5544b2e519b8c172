"""Runs suites again and again in one controller, and looks after each round at what it has come to use."""

from __future__ import annotations

import gc
import os
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from boxeval import __version__
from boxeval.receipts.ledger import utc_now
from boxeval.receipts.trust import Trust
from boxeval.receipts.verify import verify
from boxeval.rules.slopes import slopes
from boxeval.run.controller import run_suite
from boxeval.run.events import RunRequest
from boxeval.run.signals import Signals
from boxeval.sandbox.engine import connect
from boxeval.sandbox.ownership import Owner
from boxeval.sandbox.sweep import everything
from boxeval.settings import Settings
from boxeval.spec.plan import Plan, PlannedTrial
from boxeval.spec.soak import SoakReport, SoakRound, SoakSample
from boxeval.spec.trial import Trial
from boxeval.verdicts.aggregate import aggregate, conclusion

Tell = Callable[[str], None]


def soak(
    suites: Sequence[Path],
    hours: float,
    settings: Settings,
    signals: Signals,
    tell: Tell,
    trust: Callable[[], Trust],
    jobs: int | None = None,
) -> SoakReport:
    """Rounds of all suites until `hours` have passed, at least one. A signal ends it with what there is by then.

    The directory of a run that ended as it should is removed; any other is kept below `soak` in the data directory.
    `trust` gives the keys to believe, once a run has been signed.
    """
    soaking = _Soak(settings, signals, tell, trust, jobs)
    with signals.draining():
        while not soaking.is_over(hours):
            soaking.round(suites)
    return soaking.report(hours)


class _Soak:
    def __init__(
        self, settings: Settings, signals: Signals, tell: Tell, trust: Callable[[], Trust], jobs: int | None
    ) -> None:
        self._settings, self._signals, self._tell, self._jobs = settings, signals, tell, jobs
        self._trust = trust
        self._place = settings.data_dir / "soak"
        self._started_at, self._began = utc_now(), time.monotonic()
        self._number = self._runs = 0
        self._rounds: list[SoakRound] = []
        self._samples: list[SoakSample] = []

    def _elapsed_ms(self) -> int:
        return int((time.monotonic() - self._began) * 1000)

    def is_over(self, hours: float) -> bool:
        """Whether there is to be no other round."""
        return self._number > 0 and (self._signals.count > 0 or self._elapsed_ms() >= hours * 3_600_000)

    def round(self, suites: Sequence[Path]) -> None:
        """All suites once, then a sample; none of a round that a signal cut short."""
        self._number += 1
        for suite in suites:
            self._run(suite)
            if self._signals.count:
                return
        self._samples.append(self._sample())

    def _run(self, suite: Path) -> None:
        self._place.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._runs += 1
        name = f"{self._started_at.replace(':', '')}-{self._runs}-{suite.stem}"
        request = RunRequest(suite, out=self._place / name, jobs=self._jobs)
        end = run_suite(request, _Quiet(self._tell), self._settings, self._signals)
        if end.interrupted_by:
            return
        report = aggregate(verify(end.directory, self._trust(), checkpoint=end.checkpoint))
        code, why = conclusion(report)
        if end.left_behind:
            code, why = code or 3, f"{why}; left behind: {end.left_behind[0]}"
        self._rounds.append(
            SoakRound(
                suite=suite.stem,
                round=self._number,
                run_id=end.run_id,
                trials=len(report.trials),
                code=code,
                why=why,
                kept=str(end.directory) if code else None,
            )
        )
        kept = f", kept in {end.directory}" if code else ""
        self._tell(f"round {self._number}: {suite.stem}: {why}{kept}")
        if not code:
            shutil.rmtree(end.directory)

    def _sample(self) -> SoakSample:
        gc.collect()
        sample = SoakSample(
            round=self._number,
            at_ms=self._elapsed_ms(),
            memory_kib=_resident_kib(),
            descriptors=sum(1 for _ in Path("/proc/self/fd").iterdir()),
            threads=threading.active_count(),
            disk_kib=sum(map(_disk_kib, {self._settings.data_dir, self._settings.cache_dir})),
            engine_objects=self._engine_objects(),
        )
        self._tell(
            f"round {sample.round}: {sample.memory_kib} KiB of memory, {sample.descriptors} descriptors, "
            f"{sample.threads} threads, {sample.disk_kib} KiB on disk, {sample.engine_objects} objects on the engine"
        )
        return sample

    def _engine_objects(self) -> int:
        engine = connect()
        try:
            return len(everything(engine, Owner.here(self._settings.data_dir)))
        finally:
            engine.close()

    def report(self, hours: float) -> SoakReport:
        """What was found."""
        return SoakReport(
            boxeval=__version__,
            started_at=self._started_at,
            hours=hours,
            elapsed_ms=self._elapsed_ms(),
            interrupted_by=self._signals.first,
            rounds=tuple(self._rounds),
            samples=tuple(self._samples),
            slopes=slopes(self._samples),
        )


class _Quiet:
    """Passes on notes alone."""

    def __init__(self, tell: Tell) -> None:
        self.note = tell

    def planned(self, plan: Plan, directory: Path, jobs: int) -> None:
        pass

    def started(self, trial: PlannedTrial, step: str) -> None:
        pass

    def finished(self, trial: Trial) -> None:
        pass


def _resident_kib() -> int:
    lines = Path("/proc/self/status").read_text("ascii", "replace").splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)


def _disk_kib(directory: Path) -> int:
    """What a directory and everything below it take, in the blocks of its file system."""
    total = 0
    for folder, _, names in os.walk(directory):
        for path in (folder, *(os.path.join(folder, name) for name in names)):  # noqa: PTH118  strings are quicker
            try:
                total += os.lstat(path).st_blocks * 512
            except FileNotFoundError:
                continue
    return total // 1024
