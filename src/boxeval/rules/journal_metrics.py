"""Metrics from the agent's own ledger (S26, S27, S28, S30). Without a ledger all are unmeasured."""

from __future__ import annotations

from boxeval.rules.endings import exit_code
from boxeval.rules.turns import turns
from boxeval.spec.base import Scalar
from boxeval.spec.journal import AgentReceipt, Journal, LoopRun
from boxeval.spec.plan import PlannedTask
from boxeval.spec.suite import RunnerKind
from boxeval.spec.trial import Observations

_WORKERS = ("worker", "repair")
_REASONS = {
    "resolved": True,
    "loop_bound_exhausted": False,
    "loop_step_failed": False,
    "loop_not_reached": False,
}
"""Why a loop may say that it ended, and whether that is a success."""


def of_journal(task: PlannedTask, seen: Observations) -> dict[str, Scalar]:
    """Every metric that the ledger gives."""
    journal = seen.journal if seen.journal and seen.journal.sha256 else None
    if journal is None:
        return dict.fromkeys(NAMES)
    return {
        "tools.failed": journal.tools_failed,
        "tools.blocked": journal.tools_blocked,
        **_receipts(task, seen, journal),
        "process.attestedWorkers": sum(r.valid and r.role in _WORKERS for r in journal.receipts),
        "ledger.formatVersion": journal.format_version,
        "ledger.toolPairsUnmatched": journal.calls_unmatched,
        "ledger.assistantBetweenCallAndResult": journal.messages_between,
        "ledger.sessionCount": journal.sessions,
        "continuity.compactionSummaryPresent": 0 < journal.compactions == journal.summaries,
        "continuity.answeredFromPreCompaction": journal.answered_from_before,
        **_loops(journal),
    }


def _receipts(task: PlannedTask, seen: Observations, journal: Journal) -> dict[str, Scalar]:
    receipts = journal.receipts
    roots = [receipt for receipt in receipts if receipt.parent is None]
    return {
        "receipt.sealed": bool(receipts) and not journal.unsealed,
        "receipt.count": len(receipts),
        "receipt.integrityValid": all(receipt.valid for receipt in receipts) if receipts else None,
        "receipt.outcomeMatchesExit": _matches(task, seen, roots) if receipts else None,
        "receipt.rootCount": len(roots),
        "receipt.recoveryCount": sum(receipt.role == "repair" for receipt in receipts),
    }


def _matches(task: PlannedTask, seen: Observations, roots: list[AgentReceipt]) -> bool:
    """Whether each turn's process ended with the code that its receipt says, and with a reason that fits it."""
    boxes = [
        turn.box
        for turn in turns(task, seen)
        if (turn.step.runner if turn.step else task.runner).kind is RunnerKind.SCRIPTED
    ]
    ended = [exit_code(command) for box in boxes if box for command in box.commands]
    good = all((r.exit_code == 0) == (r.reason in ("completed", "resolved")) for r in roots)
    return good and [r.exit_code for r in roots] == ended


def _loops(journal: Journal) -> dict[str, Scalar]:
    loops = journal.loops
    if not loops:
        return {"loop.count": 0, **dict.fromkeys(_LOOP)}
    return {
        "loop.count": len(loops),
        "loop.attemptsSpent": sum(loop.attempts for loop in loops),
        "loop.repairsSpent": sum(loop.repairs for loop in loops),
        "loop.receiptsMatchRepairs": all(loop.repairs == loop.repairs_sealed for loop in loops),
        "loop.skippedNodes": sum(loop.skipped for loop in loops),
        "loop.unneededNodes": sum(loop.unneeded for loop in loops),
        "loop.reasonDeclared": all(_declared(loop) for loop in loops),
        "loop.resolved": all(loop.solved and loop.reason == "resolved" for loop in loops),
    }


def _declared(loop: LoopRun) -> bool:
    """A reason of the closed set, which its verifications bear out."""
    if loop.reason not in _REASONS or _REASONS[loop.reason] != loop.solved:
        return False
    if loop.reason == "loop_bound_exhausted":
        return loop.attempts == loop.max_attempts
    return loop.reason != "loop_not_reached" or loop.attempts == 0


_LOOP = tuple(
    f"loop.{name}"
    for name in (
        *("attemptsSpent", "repairsSpent", "receiptsMatchRepairs", "skippedNodes", "unneededNodes"),
        *("reasonDeclared", "resolved"),
    )
)
NAMES = (
    *("tools.failed", "tools.blocked", "receipt.sealed", "receipt.count", "receipt.integrityValid"),
    *("receipt.outcomeMatchesExit", "receipt.rootCount", "receipt.recoveryCount", "process.attestedWorkers"),
    *("ledger.formatVersion", "ledger.toolPairsUnmatched", "ledger.assistantBetweenCallAndResult"),
    *("ledger.sessionCount", "continuity.compactionSummaryPresent", "continuity.answeredFromPreCompaction"),
    *("loop.count", *_LOOP),
)
"""All of them, in order."""
