"""Step 5: put back what a turn may not leave, and make sure of it by content. What could not be is told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from boxeval.errors import EngineError
from boxeval.rules import boundary
from boxeval.rules.paths import raw_name, readable
from boxeval.rules.protect import protected
from boxeval.spec.trial import Change, Collected, Enforcement, StepSeen, Unrecoverable
from boxeval.trial.collect import collect_step
from boxeval.trial.context import TrialContext
from boxeval.trial.stage import Staged


def enforce(
    context: TrialContext, staged: Staged, collected: Collected, before: Sequence[StepSeen]
) -> Enforcement | None:
    """Roll back what is outside the turn's `writes`, and restore what `protect` names.

    None if the task declares nothing to enforce. Raises EngineError if a protected path cannot be restored, since
    then nothing may be graded.
    """
    turn, task = staged.turn, context.task
    is_bounded = turn.step is not None or turn.task.writes is not None
    if not is_bounded and not task.protect:
        return None
    found = boundary.violations(collected.changes, turn.task.writes)
    undone, _ = boundary.undoable(found, task.workspace.excludes)
    guarded = _protected(context, staged, collected)
    enforced = Enforcement(restored=tuple(boundary.described(change) for change in guarded))
    if paths := {change.path for change in (*undone, *guarded)}:
        enforced = _put_back(context, staged, paths, enforced)
        _require_restored(context, staged, enforced)
    if not is_bounded:
        return enforced
    verdict = boundary.judge(
        turn.step.id if turn.step else "",
        turn.task.writes,
        task.workspace.excludes,
        boundary.baseline(staged.fixture.digest, before),
        collected,
        enforced,
    )
    return enforced.model_copy(update={"boundary": verdict})


def _put_back(
    context: TrialContext, staged: Staged, paths: Iterable[str], enforced: Enforcement
) -> Enforcement:
    layer, fixture = staged.turn.layer, staged.fixture
    raw = sorted(raw_name(path) for path in paths)
    faults = context.slot.keeper.rollback(layer, staged.below, fixture.key, raw)
    kept = collect_step(context, fixture, layer, staged.below)
    told = tuple(Unrecoverable(path=readable(path), reason=reason) for path, reason in faults)
    return enforced.model_copy(update={"kept": kept, "faults": told})


def _protected(context: TrialContext, staged: Staged, collected: Collected) -> tuple[Change, ...]:
    if not context.task.protect or not collected.changes:
        return ()
    holding = context.fixtures.holding(context.task.protect, staged.fixture, context.slot)
    return protected(collected.changes, context.task.protect, holding)


def _require_restored(context: TrialContext, staged: Staged, enforced: Enforcement) -> None:
    kept = enforced.kept or Collected()
    left = _protected(context, staged, kept)
    if enforced.restored and (kept.limit or kept.error or left):
        why = kept.limit or kept.error or f"{left[0].path} still differs"
        raise EngineError(f"protected paths could not be restored: {why}")
