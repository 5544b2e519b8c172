"""Why a trial did not pass: a pure function of its evidence and its outcome."""

from __future__ import annotations

from collections.abc import Callable

from boxeval.rules.endings import one_line
from boxeval.spec.cause import CauseKind, FailureCause
from boxeval.spec.outcome import Execution, FailureClass, Outcome, TaskState, VerdictClass
from boxeval.spec.trial import ModelTraffic, Observations

STALL_MS = 120_000
"""Without a word from the model while a request is in flight, and no other is answered."""
_Rule = Callable[[Observations, Outcome], bool]


def failure_cause(seen: Observations, outcome: Outcome) -> FailureCause | None:
    """None for a trial that passed, or that had nothing to check."""
    if outcome.failure_class is None or outcome.task is TaskState.PASSED:
        return None
    kind = next((kind for kind, applies in _RULES if applies(seen, outcome)), CauseKind.UNKNOWN)
    evidence = _of_the_model(kind, seen.traffic) if seen.traffic else None
    return FailureCause(kind=kind, evidence=one_line(evidence or outcome.detail or outcome.failure_class))


def _of_the_model(kind: CauseKind, traffic: ModelTraffic) -> str | None:
    """What went over the wire says more than the outcome where the model is the cause."""
    match kind:
        case CauseKind.API_ERROR:
            return traffic.error
        case CauseKind.REFUSAL:
            return f"the last of {traffic.requests} answers of the model declined"
        case CauseKind.PROVIDER_STALL:
            return f"a request waited {traffic.silent_ms} ms for the model, and nothing came"
    return None


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


def _refused(seen: Observations, outcome: Outcome) -> bool:
    """Scored all the same: a model that declines has not done its task."""
    return bool(seen.traffic and seen.traffic.refused) and outcome.verdict_class is not VerdictClass.INFRA


def _stalled(seen: Observations, outcome: Outcome) -> bool:
    """The turn did not end well, and the model had kept it waiting."""
    long = bool(seen.traffic and seen.traffic.silent_ms >= STALL_MS)
    return (
        long
        and outcome.failure_class in (FailureClass.TIMEOUT, FailureClass.RUNNER_FAILED)
        and outcome.limit != "grader"
    )


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
    (CauseKind.REFUSAL, _refused),
    (CauseKind.PROVIDER_STALL, _stalled),
    (CauseKind.SESSION_TIMEOUT, _late_agent),
    (CauseKind.OBSERVER_TIMEOUT, _late_grader),
    (CauseKind.ASSERTION, _assertion),
)
