"""The session ledger: one line for each session with a model, for people who pay for it (V16). Best effort.

It is no evidence and is not sealed; everything in it follows from the receipts. A line that cannot be written is
lost, and no trial fails for it.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from boxeval.spec.outcome import Execution, FailureClass
from boxeval.spec.plan import PlannedTask
from boxeval.spec.policy import Policy
from boxeval.spec.trial import Trial

FILE = "sessions.jsonl"


def append_session(directory: Path, trial: Trial, task: PlannedTask, policy: Policy) -> None:
    """Add the line of a sealed trial, if it had a model."""
    if trial.observations.traffic is None:
        return
    line = json.dumps(session(trial, task, policy), separators=(",", ":")).encode() + b"\n"
    with suppress(OSError):
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(directory / FILE, flags, 0o600)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)


def session(trial: Trial, task: PlannedTask, policy: Policy) -> dict[str, Any]:
    """Key, budget, elapsed time, end, liveness and bill of a trial's session. `null` is unknown."""
    traffic = trial.observations.traffic
    assert traffic is not None
    measured = traffic.unmeasured_requests == 0
    return {
        "key": f"{trial.task}[{trial.target}]#{trial.repeat}",
        "trial": trial.trial_id,
        "attempt": trial.attempt,
        "budget": policy.budget.model_dump(mode="json", exclude_none=True) | {"ms": task.agent_timeout_ms},
        "elapsedMs": trial.steps_ms.get("run", 0),
        "end": end_of(trial),
        "liveness": {
            "requests": traffic.requests,
            "backgroundRequests": traffic.background_requests,
            "modelMs": traffic.model_ms,
        },
        "billed": {
            "tokens": traffic.input_tokens + traffic.output_tokens if measured else None,
            "usd": traffic.cost_usd,
            "costKnown": traffic.cost_usd is not None,
        },
    }


def end_of(trial: Trial) -> str:
    """How the session ended: the candidate's own end if nothing else came before it."""
    seen, outcome = trial.observations, trial.outcome
    traffic = seen.traffic
    if seen.cancelled:
        return "aborted"
    if outcome.failure_class is FailureClass.TIMEOUT:
        return "session_timeout" if outcome.limit == "agent" else "observer_timeout"
    if outcome.execution is Execution.COMPLETED:
        return "refusal" if traffic and traffic.refused else "completed"
    return "api_error" if traffic and (traffic.error or traffic.limit) else "error"
