"""A person decides about a check of a sealed trial: the statement is signed, kept, and sealed as another attempt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from boxeval.errors import StorageError, TamperError, UsageError
from boxeval.receipts.canonical import MalformedError, canonical
from boxeval.receipts.human import HumanEnvelope, read_envelope, sealed_form, signed, statement
from boxeval.receipts.keys import SigningKey
from boxeval.receipts.ledger import utc_now
from boxeval.receipts.recovery import Recovery
from boxeval.receipts.storage import read_regular, replace
from boxeval.receipts.trust import Trust
from boxeval.receipts.verify import VerifiedRun
from boxeval.rules.attempts import by_trial, is_settled
from boxeval.rules.human import evidence_digest, human_verdict, misfit, question_digest
from boxeval.rules.metrics import measure
from boxeval.rules.verdict import decide
from boxeval.spec.checks import HumanCheck
from boxeval.spec.judged import HumanVerdict
from boxeval.spec.plan import PlannedTask
from boxeval.spec.trial import Trial

VERDICTS = "verdicts"
"""Folder of a run with the statements as they were signed. The ledger holds them too; nothing is read from here."""
MAX_FILE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Awaited:
    """A check of a trial that waits for a person. `trial` is the last attempt."""

    trial: Trial
    task: PlannedTask
    check: HumanCheck


def awaited(run: VerifiedRun) -> tuple[Awaited, ...]:
    """Everything in a run that waits for a person, in plan order."""
    tasks = {(task.task, task.target): task for task in run.plan.tasks}
    found = []
    for attempts in by_trial(run.trials).values():
        trial = attempts[-1]
        task = tasks[trial.task, trial.target]
        if is_settled(attempts):
            continue
        for check, seen in zip(task.verify.checks, trial.observations.checks, strict=False):
            if isinstance(check, HumanCheck) and seen.value is None:
                found.append(Awaited(trial, task, check))
    return tuple(found)


def find(run: VerifiedRun, trial: str, check: str | None) -> Awaited:
    """The one check that a person means by a trial's id or key. `UsageError` names what there is instead."""
    waiting = [
        one
        for one in awaited(run)
        if trial in (one.trial.trial_id, f"{one.trial.task}[{one.trial.target}]#{one.trial.repeat}")
    ]
    if check is not None:
        waiting = [one for one in waiting if one.check.id == check]
    if len(waiting) == 1:
        return waiting[0]
    if waiting:
        names = ", ".join(f"`{one.check.id}`" for one in waiting)
        raise UsageError(f"{trial}: several checks wait for a person: {names}; name one with --check")
    wanted = f" on check `{check}`" if check else ""
    raise UsageError(
        f"{trial}: no trial of this run waits for a person{wanted}; `boxeval grade RUN` lists them"
    )


def stated(
    run: VerifiedRun,
    one: Awaited,
    verdict: Literal["pass", "fail"],
    reason: str,
    by: str,
    key: SigningKey,
    now: Callable[[], str] = utc_now,
) -> HumanEnvelope:
    """Sign what a person decided."""
    said = HumanVerdict(
        run_id=run.plan.run_id,
        trial_id=one.trial.trial_id,
        check=one.check.id,
        question=question_digest(one.check),
        evidence=evidence_digest(one.trial.observations),
        verdict=verdict,
        reason=reason,
        by=by,
        at=now(),
    )
    return signed(said, key)


def read_statement(file: Path) -> HumanEnvelope:
    """A statement that was signed elsewhere. `UsageError` if the file is none."""
    try:
        return read_envelope(read_regular(file, MAX_FILE_BYTES))
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror or error}") from None
    except MalformedError as error:
        raise UsageError(f"{file}: is not a person's signed verdict: {error}") from None


def apply(directory: Path, trust: Trust, one: Awaited, envelope: HumanEnvelope, key: SigningKey) -> Trial:
    """Seal the trial once more, with what the person decided, and close the run again; `key` is the run's.

    The statement is kept in the run's `verdicts/`. Raises TamperError for a statement that does not count, and what
    `Recovery` raises.
    """
    with Recovery(directory, trust) as recovery:
        try:
            said = statement(envelope, trust)
        except MalformedError as error:
            raise TamperError(f"the statement does not count: {error}") from None
        if recovery.run.closed_at is None:
            raise UsageError(f"{directory}: is not closed; finish it first with `boxeval run --resume`")
        seen = one.trial.observations
        run_id = recovery.run.plan.run_id
        if fault := misfit(said, one.check, run_id, one.trial.trial_id, seen):
            raise TamperError(f"the statement {fault}")
        current = find(recovery.run, one.trial.trial_id, one.check.id)
        trial = decided_trial(current, envelope, recovery.attempts[one.trial.trial_id] + 1)
        _keep(directory, said, envelope)
        ledger = recovery.go_on(key)
        try:
            ledger.append(trial)
            ledger.close(recovery.run.interrupted_by)
        finally:
            ledger.release()
    return trial


def decided_trial(one: Awaited, envelope: HumanEnvelope, attempt: int) -> Trial:
    """The trial with the statement in its place and the outcome that follows."""
    value = sealed_form(envelope)
    seen = one.trial.observations
    checks = tuple(
        found.model_copy(update={"value": value, **human_verdict(one.check, value).model_dump()})
        if found.id == one.check.id
        else found
        for found in seen.checks
    )
    seen = type(seen).model_validate(seen.model_copy(update={"checks": checks}).model_dump())
    metrics = measure(one.task, seen, one.trial.wall_ms)
    return one.trial.model_copy(
        update={
            "attempt": attempt,
            "observations": seen,
            "metrics": metrics,
            "outcome": decide(one.task, seen, metrics),
        }
    )


def _keep(directory: Path, said: HumanVerdict, envelope: HumanEnvelope) -> None:
    folder = directory / VERDICTS
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        replace(folder / f"{said.trial_id}.{said.check}.json", canonical(envelope) + b"\n")
    except OSError as error:
        raise StorageError(f"{folder}: cannot be written: {error.strerror or error}") from error
