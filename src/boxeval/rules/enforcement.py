"""Whether what was put back after each turn follows from what was collected: `boxeval verify` asks this again."""

from __future__ import annotations

from boxeval.rules import boundary, forbidden
from boxeval.rules.turns import Turn, has_boundary, turns
from boxeval.spec.plan import PlannedTask
from boxeval.spec.trial import Collected, Enforcement, Observations


def contradiction(task: PlannedTask, seen: Observations) -> str | None:
    """What in the enforcement of a trial does not follow from its evidence; None if all does."""
    for number, turn in enumerate(turns(task, seen)):
        if turn.enforced is None:
            continue
        if has_boundary(turn) != (turn.enforced.boundary is not None):
            return f"a boundary verdict on {turn.name} is missing, or was never due"
        if turn.enforced.boundary and turn.enforced.boundary != _verdict(task, seen, turn, number):
            return f"the boundary verdict on {turn.name} does not follow from its changes"
        if not _is_restored(task, turn.collected or Collected(), turn.enforced):
            return f"not all protected paths that {turn.name} changed were restored"
    return None


def _verdict(task: PlannedTask, seen: Observations, turn: Turn, number: int) -> object:
    return boundary.judge(
        turn.step.id if turn.step else "",
        turn.writes,
        task.workspace.excludes,
        boundary.baseline(seen.fixture or "", seen.steps[:number]),
        turn.collected or Collected(),
        turn.enforced or Enforcement(),
    )


def _is_restored(task: PlannedTask, collected: Collected, enforced: Enforcement) -> bool:
    """Which directories hold protected files only the fixture tells; what the patterns name must be there."""
    restored = {change.path for change in enforced.restored}
    if not set(forbidden.match(collected.changes, task.protect)) <= restored:
        return False
    left = {change.path for change in enforced.kept.changes} if enforced.kept else set()
    return not restored or (enforced.kept is not None and left.isdisjoint(restored))
