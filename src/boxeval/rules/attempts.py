"""Several attempts at one trial: which one decides, and when there is no need for another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from boxeval.rules.human import awaits_person
from boxeval.spec.outcome import Weight
from boxeval.spec.plan import Plan, PlannedTrial
from boxeval.spec.trial import Trial


def by_trial(trials: Iterable[Trial]) -> dict[str, list[Trial]]:
    """Attempts by trial id, in the order in which they were sealed."""
    attempts: dict[str, list[Trial]] = {}
    for trial in trials:
        attempts.setdefault(trial.trial_id, []).append(trial)
    return attempts


def is_settled(attempts: Iterable[Trial]) -> bool:
    """Whether an attempt has a verdict, or needs none: only void and cancelled ones may be tried again."""
    return any(trial.outcome.weight is not Weight.VOID for trial in attempts)


def deciding(attempts: Sequence[Trial]) -> Trial:
    """The earliest attempt that was not void, else the last."""
    return next((trial for trial in attempts if trial.outcome.weight is not Weight.VOID), attempts[-1])


def unsettled(plan: Plan, trials: Iterable[Trial]) -> tuple[PlannedTrial, ...]:
    """What a resumed run has to run, in plan order: trials without a receipt, and those that were void.

    A trial that only waits for a person is left to the person.
    """
    attempts = by_trial(trials)

    def is_over(made: Sequence[Trial]) -> bool:
        return is_settled(made) or bool(made and awaits_person(made[-1].observations))

    return tuple(trial for trial in plan.trials if not is_over(attempts.get(trial.trial_id, ())))
