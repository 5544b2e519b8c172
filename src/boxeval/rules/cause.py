"""Why a trial did not pass: a pure function of its evidence and its outcome."""

from __future__ import annotations

from collections.abc import Callable

from boxeval.rules.endings import one_line
from boxeval.spec.cause import CauseKind, FailureCause
from boxeval.spec.outcome import Execution, FailureClass, Outcome, TaskState, VerdictClass
from boxeval.spec.trial import Observations

_Rule = Callable[[Observations, Outcome], bool]


def failure_cause(seen: Observations, outcome: Outcome) -> FailureCause | None:
    """None for a trial that passed, or that had nothing to check."""
    if outcome.failure_class is None or outcome.task is TaskState.PASSED:
        return None
    kind = next((kind for kind, applies in _RULES if applies(seen, outcome)), CauseKind.UNKNOWN)
    model_error = seen.traffic.error if seen.traffic and kind is CauseKind.API_ERROR else None
    return FailureCause(kind=kind, evidence=one_line(model_error or outcome.detail or outcome.failure_class))


def _contract(_seen: Observations, outcome: Outcome) -> bool:
    return outcome.verdict_class is VerdictClass.CONTRACT


def _before_the_turn(seen: Observations, outcome: Outcome) -> bool:
    """Nothing of the candidate ran, or its model never answered."""
    never = seen.agent is None and not seen.steps
    model = bool(seen.traffic and seen.traffic.failed_before_first_turn)
    infra = outcome.verdict_class is VerdictClass.INFRA
    return infra and (never or model or outcome.execution is Execution.NOT_RUN)


def _model(seen: Observations, _outcome: Outcome) -> bool:
    return bool(seen.traffic and seen.traffic.error)


def _late_agent(_seen: Observations, outcome: Outcome) -> bool:
    return outcome.failure_class is FailureClass.TIMEOUT and outcome.limit == "agent"


def _late_grader(_seen: Observations, outcome: Outcome) -> bool:
    return outcome.failure_class is FailureClass.TIMEOUT and outcome.limit == "grader"


def _assertion(_seen: Observations, outcome: Outcome) -> bool:
    return outcome.verdict_class is VerdictClass.ASSERTION


_RULES: tuple[tuple[CauseKind, _Rule], ...] = (
    (CauseKind.CONTRACT, _contract),
    (CauseKind.PRE_TURN_INFRA, _before_the_turn),
    (CauseKind.API_ERROR, _model),
    (CauseKind.SESSION_TIMEOUT, _late_agent),
    (CauseKind.OBSERVER_TIMEOUT, _late_grader),
    (CauseKind.ASSERTION, _assertion),
)
