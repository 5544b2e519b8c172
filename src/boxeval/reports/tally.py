"""Where a run stands while it goes, from what its watcher is told."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field

from boxeval.reports.words import Kind, cause, kind_of
from boxeval.spec.plan import Plan, PlannedTrial
from boxeval.spec.trial import Trial
from boxeval.verdicts.aggregate import as_expected

SHOWN_REDS = 5


@dataclass(frozen=True, slots=True)
class Finished:
    """A trial that ended: its key, how a reader sorts it, and the verdict in words."""

    key: str
    kind: Kind
    words: str


@dataclass(slots=True)
class Tally:
    """Not safe between threads by itself: its owner holds a lock."""

    plan: Plan | None = None
    running: dict[str, tuple[str, str, float]] = field(default_factory=dict)
    """By trial id: key, step, and when it started by the monotonic clock."""
    counts: dict[Kind, int] = field(default_factory=dict)
    reds: deque[str] = field(default_factory=lambda: deque(maxlen=SHOWN_REDS))
    done: int = 0
    began: float = field(default_factory=time.monotonic)

    @property
    def total(self) -> int:
        """Planned trials."""
        return len(self.plan.trials) if self.plan else 0

    def enter(self, trial: PlannedTrial, step: str) -> bool:
        """Note a step; True if the trial was not running before."""
        known = self.running.get(trial.trial_id)
        self.running[trial.trial_id] = (trial.key, step, known[2] if known else time.monotonic())
        return known is None

    def leave(self, trial: Trial) -> Finished:
        """Count a finished trial."""
        self.running.pop(trial.trial_id, None)
        kind = self._sort(trial)
        why = ": ".join(text for text in (cause(trial.outcome), trial.outcome.detail) if text)
        words = f"{kind}: {why}" if why else str(kind)
        key = f"{trial.task}[{trial.target}]#{trial.repeat}"
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self.done += 1
        if kind.is_red or kind is Kind.VOID:
            self.reds.append(f"{key}: {words}")
        return Finished(key, kind, words)

    def remaining_s(self, now: float) -> float | None:
        """Seconds until the end, if the rest takes as long as what is done. None before the first end."""
        return (now - self.began) / self.done * (self.total - self.done) if self.done else None

    def _sort(self, trial: Trial) -> Kind:
        tasks = self.plan.tasks if self.plan else ()
        for task in tasks:
            if (task.task, task.target) == (trial.task, trial.target):
                return kind_of(trial.outcome, task.expect, as_expected(trial, task))
        raise LookupError(f"{trial.task}[{trial.target}] is not in the plan")
