"""Verification: the only way from a run's directory to numbers. Needs no engine and no network."""

from __future__ import annotations

import hashlib
from dataclasses import InitVar, dataclass
from pathlib import Path

from boxeval import __version__
from boxeval.errors import IncompleteError, TamperError, UnreadableError
from boxeval.receipts.blobs import BlobStore
from boxeval.receipts.canonical import (
    MAX_BYTES,
    MalformedError,
    OtherVersionError,
    canonical_json,
    read,
)
from boxeval.receipts.chain import Line, other_version, read_chain, refuse
from boxeval.receipts.closing import check_checkpoint, check_closings, check_times
from boxeval.receipts.evidence import referenced_blobs
from boxeval.receipts.human import people_fault
from boxeval.receipts.ledger import BLOBS, CHECKPOINT, LEDGER, PLAN
from boxeval.receipts.regrade import Regrade, Regrading, Reread, Retell
from boxeval.receipts.storage import read_regular
from boxeval.receipts.trust import Trust
from boxeval.rules import chaos
from boxeval.rules.check_consistency import checks_fault
from boxeval.rules.enforcement import contradiction
from boxeval.rules.journal import read_journal
from boxeval.rules.metrics import measure
from boxeval.rules.verdict import decide
from boxeval.spec.base import Scalar
from boxeval.spec.plan import Plan, PlannedTask, PlannedTrial
from boxeval.spec.receipt import Closed, Opened, Resumed, Sealed
from boxeval.spec.trial import Trial

_MADE_BY_VERIFY = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedRun:
    """A run that `verify` found unchanged. Nothing else can make one, and nothing else can be counted.

    `complete` is False if the run ended early or lines are missing: `missing` are the keys of planned trials
    without a receipt, in plan order, and `problems` says in words what is not as it should be. `notes` says what was
    checked less far, which is no fault: verdicts of graders of which only the reduction was computed again.
    """

    plan: Plan
    trials: tuple[Trial, ...]
    complete: bool
    missing: tuple[str, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    keyid: str
    key_label: str
    opened_at: str
    resumed_at: tuple[str, ...]
    closed_at: str | None
    interrupted_by: str | None
    checkpoint: str | None
    blobs: BlobStore
    made_by: InitVar[object]

    def __post_init__(self, made_by: object) -> None:
        if made_by is not _MADE_BY_VERIFY:
            raise TypeError("only boxeval.receipts.verify.verify makes a VerifiedRun")


def verify(
    directory: Path,
    trust: Trust,
    *,
    checkpoint: str | None = None,
    regrade: Regrade | None = None,
    reread: Reread | None = None,
    retell: Retell | None = None,
) -> VerifiedRun:
    """Check a run, in this order:

    1. The directory, its plan and its ledger can be read (`UnreadableError`), and are regular files.
    2. Every line is an envelope in canonical form, by one key that `trust` holds and has not revoked; its
       signature holds; its payload is a receipt in canonical form; its index and `previous` follow the line
       before. Only the last line may be torn: cut short, or no JSON at all.
    3. The first line opens the run (if none is whole, `IncompleteError`); behind a closing line the run is resumed,
       or there is nothing.
    4. `plan.json` is in canonical form and is the plan that line 1 commits to; every line names this run and
       this plan. The plan names no trial twice and has a task for each.
    5. The count and Merkle root of every closing line fit the lines before it.
    6. The key was in force whenever the run opened, was resumed and closed.
    7. Every trial is in the plan with the same task, target, repeat and identity; its attempts count from 1.
    8. Every blob that a trial points to is there, and is what its name says.
    9. Readings of session ledgers, boundary verdicts with their digests, verdicts of checks, metrics and outcome
       are what the rules give again for the sealed observations. A person's statement is about its check and trial,
       by a key that `trust` holds. What a grader made of a text, `regrade` makes again of the kept one,
       `reread` what an extension said, and `retell` what an agent's stream and session files say.
    10. No other blob is different from what its name says.
    11. The checkpoint file, and the `checkpoint` given here, are the line that the ledger gives.

    A missing closing line, checkpoint file or trial, and a torn last line, make a run that is not `complete`; so does
    a checkpoint of an earlier closing line, and, in a run that is not closed, a broken blob that nothing points to.
    Every other deviation is a `TamperError` that names the line and the reason. Other files in the directory are
    ignored: nothing is read from them.

    A verdict that does not follow in a run that another version of boxeval made is an `UnreadableError`: its rules
    may have been others.
    """
    return verify_lines(
        directory, trust, checkpoint=checkpoint, regrade=regrade, reread=reread, retell=retell
    )[0]


def verify_lines(
    directory: Path,
    trust: Trust,
    *,
    checkpoint: str | None = None,
    regrade: Regrade | None = None,
    reread: Reread | None = None,
    retell: Retell | None = None,
) -> tuple[VerifiedRun, tuple[Line, ...]]:
    """Like `verify`, with the whole lines of the ledger."""
    plan, opened, lines, problems = _read(directory, trust)
    _check_bindings(plan, opened, lines)
    closings = check_closings(lines)
    resumed_at = tuple(line.receipt.body.at for line in lines if isinstance(line.receipt.body, Resumed))
    closed = lines[-1].receipt.body if isinstance(lines[-1].receipt.body, Closed) else None
    check_times(lines)
    blobs = BlobStore(directory / BLOBS)
    notes: list[str] = []
    trials = _check_trials(plan, lines, blobs, trust, Regrading(blobs, regrade, reread, retell, notes))
    problems += _check_strays(
        blobs, closed is not None, {sha for t in trials for _, sha in referenced_blobs(t.observations)}
    )
    problems += check_checkpoint(directory / CHECKPOINT, closings, closed is not None, checkpoint)
    sealed = {trial.trial_id for trial in trials}
    missing = tuple(trial.key for trial in plan.trials if trial.trial_id not in sealed)
    if closed is None:
        problems.append("the closing line is missing: the run ended early, or lines were removed")
    if missing:
        problems.append(f"{len(missing)} of {len(plan.trials)} trials have no receipt: {', '.join(missing)}")
    run = VerifiedRun(
        plan=plan,
        trials=trials,
        complete=not problems,
        missing=missing,
        problems=tuple(problems),
        notes=tuple(notes),
        keyid=lines[0].key.keyid,
        key_label=lines[0].key.label,
        opened_at=opened.at,
        resumed_at=resumed_at,
        closed_at=closed.at if closed else None,
        interrupted_by=closed.interrupted_by if closed else None,
        checkpoint=closings[-1] if closed else None,
        blobs=blobs,
        made_by=_MADE_BY_VERIFY,
    )
    return run, lines


def _read(directory: Path, trust: Trust) -> tuple[Plan, Opened, tuple[Line, ...], list[str]]:
    """Steps 1 to 3, and that the plan is the one that the opening line commits to."""
    try:
        if not directory.is_dir():
            raise UnreadableError(f"{directory}: no such run directory")
        has_plan, has_ledger = (directory / PLAN).exists(), (directory / LEDGER).exists()
        if not has_plan and not has_ledger:
            raise UnreadableError(f"{directory}: holds no run: neither {PLAN} nor {LEDGER}")
        if not has_plan:
            raise TamperError(f"{PLAN}: missing, though the ledger is there")
        if not has_ledger:
            raise IncompleteError(f"{directory}: {LEDGER} is missing: the run ended before its first line")
        lines, torn = read_chain(directory / LEDGER, trust)
        plan_bytes = read_regular(directory / PLAN, MAX_BYTES)
    except OSError as error:
        raise UnreadableError(f"{directory}: cannot be read: {error.strerror or error}") from None
    if not lines:
        raise IncompleteError(f"{directory}: {LEDGER} has no whole line: the run ended before its first line")
    opened = lines[0].receipt.body
    if not isinstance(opened, Opened):
        raise refuse(1, f"is a {opened.type} receipt, not the opening of a run")
    # Before it is parsed: what a trusted key did not commit to may be a bomb.
    if opened.plan != hashlib.sha256(plan_bytes).hexdigest():
        raise TamperError(f"{PLAN}: is not the plan that the ledger's first line commits to")
    try:
        plan = read(Plan, plan_bytes)
    except OtherVersionError as error:
        raise other_version(PLAN, error) from None
    except MalformedError as error:
        raise TamperError(f"{PLAN}: {error}") from None
    problems = [f"{LEDGER} line {len(lines) + 1} is torn: {torn}"] if torn else []
    return plan, opened, lines, problems


def _check_bindings(plan: Plan, opened: Opened, lines: tuple[Line, ...]) -> None:
    """The rest of step 4."""
    if opened.trials != len(plan.trials):
        raise refuse(1, f"announces {opened.trials} trials, but the plan has {len(plan.trials)}")
    for line in lines:
        body = line.receipt.body
        if body.run_id != plan.run_id:
            raise refuse(line.number, f"belongs to run {body.run_id}, not to {plan.run_id}")
        if body.plan != opened.plan:
            raise refuse(line.number, "belongs to another plan")
        if line is not lines[0] and isinstance(body, Opened):
            raise refuse(line.number, "opens the run a second time")
    tasks = [(task.task, task.target) for task in plan.tasks]
    cells = [(trial.task, trial.target, trial.repeat) for trial in plan.trials]
    for names in (tasks, cells, [trial.trial_id for trial in plan.trials]):
        if len(set(names)) != len(names):
            raise TamperError(f"{PLAN}: names a task or trial twice")
    if not {(task, target) for task, target, _ in cells} <= set(tasks):
        raise TamperError(f"{PLAN}: has a trial without a task")


def _check_trials(
    plan: Plan, lines: tuple[Line, ...], blobs: BlobStore, trust: Trust, regrading: Regrading
) -> tuple[Trial, ...]:
    """Steps 7 to 9."""
    planned = {trial.trial_id: trial for trial in plan.trials}
    tasks = {(task.task, task.target): task for task in plan.tasks}
    attempts: dict[str, int] = {}
    good_blobs: set[str] = set()
    trials: list[Trial] = []
    for line in lines:
        body = line.receipt.body
        if not isinstance(body, Sealed):
            continue
        trial = body.trial
        place = planned.get(trial.trial_id)
        if place is None:
            raise refuse(line.number, f"trial {trial.trial_id} is not in the plan")
        task = tasks[(place.task, place.target)]
        _check_place(line.number, trial, place, task)
        attempts[trial.trial_id] = expected = attempts.get(trial.trial_id, 0) + 1
        if trial.attempt != expected:
            raise refuse(
                line.number, f"attempt {trial.attempt} of {place.key}, where {expected} is due: a duplicate"
            )
        for name, sha256 in referenced_blobs(trial.observations):
            _check_blob(line.number, name, sha256, blobs, good_blobs)
        _check_journal(line.number, trial, place, blobs)
        if fault := people_fault(plan.run_id, task, trial, trust):
            raise refuse(line.number, f"{place.key}: {fault}")
        if fault := _verdict_fault(trial, task) or regrading.fault(place, task, trial):
            raise _not_following(line.number, f"{place.key}: {fault}", plan.provenance.boxeval)
        trials.append(trial)
    return tuple(trials)


def _check_place(number: int, trial: Trial, place: PlannedTrial, task: PlannedTask) -> None:
    found = (trial.task, trial.target, trial.repeat)
    if found != (place.task, place.target, place.repeat):
        raise refuse(
            number,
            f"says that it is {found[0]}[{found[1]}]#{found[2]}, but its trial id is that of {place.key}",
        )
    if trial.identity != task.identity:
        raise refuse(number, f"{place.key} ran with other inputs than planned (identity)")


def _check_blob(number: int, name: str, sha256: str, blobs: BlobStore, good: set[str]) -> None:
    if sha256 in good:
        return
    try:
        blobs.check(sha256)
    except TamperError as error:
        raise refuse(number, f"its evidence ({name}): {error}") from None
    good.add(sha256)


def _check_journal(number: int, trial: Trial, place: PlannedTrial, blobs: BlobStore) -> None:
    journal = trial.observations.journal
    if journal and journal.sha256 and read_journal(blobs.get(journal.sha256)) != journal:
        raise refuse(number, f"what is said of the session ledger of {place.key} does not follow from it")


def _not_following(number: int, fault: str, made_by: str) -> TamperError | UnreadableError:
    if made_by == __version__:
        return refuse(number, fault)
    return UnreadableError(
        f"{LEDGER} line {number}: {fault} by the rules of boxeval {__version__}, but boxeval {made_by} made it; "
        "verify it with that version"
    )


def _verdict_fault(trial: Trial, task: PlannedTask) -> str | None:
    seen = trial.observations
    fault = contradiction(task, seen) or checks_fault(task, seen)
    fault = fault or chaos.contradiction(task, seen, trial.repeat)
    if fault:
        return fault
    metrics = measure(task, trial.observations, trial.wall_ms)
    if not _same(metrics, trial.metrics):
        return "its metrics do not follow from its evidence"
    if decide(task, trial.observations, metrics) != trial.outcome:
        return "its outcome does not follow from its evidence"
    return None


def _same(one: dict[str, Scalar], other: dict[str, Scalar]) -> bool:
    """Compared as bytes, since in Python True equals 1."""
    try:
        return canonical_json({**one}) == canonical_json({**other})
    except MalformedError:
        return False


def _check_strays(blobs: BlobStore, closed: bool, referenced: set[str]) -> list[str]:
    """Step 10. Before a run is closed, a crash may have left one half-written."""
    problems = []
    for name in blobs.names():
        if name in referenced:
            continue
        try:
            blobs.check(name)
        except TamperError as error:
            if closed:
                raise
            problems.append(f"{error}; no receipt points to it")
    return problems
