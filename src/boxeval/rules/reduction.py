"""From the statuses of a trial's checks to its grading and its verdict (contract G62), and to one score (V38)."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

from boxeval.spec.graded import CheckStatus, CheckVerdict
from boxeval.spec.outcome import Execution, Grading, TaskState

THRESHOLD = 0.7
"""The mean that passes with weighted scoring, if the suite does not say."""
_SCORES = {CheckStatus.PASSED: 1.0, CheckStatus.FAILED: 0.0}


def reduce(
    execution: Execution, wanted: int, statuses: Sequence[CheckStatus], evidence_complete: bool = True
) -> tuple[Grading, TaskState]:
    """G62, word by word. `wanted` is how many checks were declared."""
    grading = _grading(execution, wanted, statuses, evidence_complete)
    if execution is not Execution.COMPLETED:
        return grading, TaskState.NOT_ASSESSED
    if CheckStatus.FAILED in statuses:
        return grading, TaskState.FAILED
    return grading, TaskState.PASSED if grading is Grading.COMPLETED else TaskState.NOT_ASSESSED


def _grading(
    execution: Execution, wanted: int, statuses: Sequence[CheckStatus], evidence_complete: bool
) -> Grading:
    if CheckStatus.ERROR in statuses:
        return Grading.ERROR
    if execution is not Execution.COMPLETED:
        return Grading.NOT_REQUESTED
    if not evidence_complete or len(statuses) != wanted or CheckStatus.UNAVAILABLE in statuses:
        return Grading.UNAVAILABLE
    return Grading.COMPLETED if wanted else Grading.NOT_REQUESTED


def score_of(verdict: CheckVerdict) -> float | None:
    """A check's score: its own, else 1 or 0; None if it was not decided."""
    if verdict.status not in _SCORES:
        return None
    return _SCORES[verdict.status] if verdict.score is None else verdict.score


def mean_score(verdicts: Sequence[CheckVerdict]) -> float | None:
    """The mean of all scores; None if there are none, or one is not decided."""
    scores = [score_of(verdict) for verdict in verdicts]
    decided = [score for score in scores if score is not None]
    return fsum(decided) / len(decided) if decided and len(decided) == len(scores) else None


def weighed(verdicts: Sequence[CheckVerdict], threshold: float) -> list[CheckStatus]:
    """Statuses for `reduce` by weighted scoring: what can no longer reach the threshold has failed."""
    if not verdicts:
        return []
    scores = [score_of(verdict) for verdict in verdicts]
    best = fsum(1.0 if score is None else score for score in scores) / len(scores)
    undecided = [verdict.status for verdict, score in zip(verdicts, scores, strict=True) if score is None]
    reached = CheckStatus.PASSED if best >= threshold else CheckStatus.FAILED
    return [*undecided, *[reached] * (len(verdicts) - len(undecided))]
