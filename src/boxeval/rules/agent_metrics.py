"""Metrics out of what an agent says of itself: its own usage, never merged with what the gateway counted (S21)."""

from __future__ import annotations

from boxeval.spec.agent_record import AgentRecord, CallEnd
from boxeval.spec.base import SAFE, Scalar
from boxeval.spec.journal import Journal

_KEYS = ("receiptUsage.receiptCount", "receiptUsage.totalTokens", "receiptUsage.costUsd")
_CONTEXT = {
    "context.indexedFiles": "indexed_files",
    "context.coverage": "coverage",
    "context.structuralHash": "structural_hash",
    "context.digestTokens": "digest_tokens",
}


def of_record(record: AgentRecord | None, journal: Journal | None) -> dict[str, Scalar]:
    """Usage needs every turn's, or every receipt's of the agent's own ledger; a cost, every turn's cost.

    The index is that of the last turn that made one.
    """
    indexes = [turn.context for turn in record.turns if turn.context] if record else []
    index = indexes[-1] if indexes else None
    return {
        **_usage(record, journal),
        **{name: getattr(index, field, None) for name, field in _CONTEXT.items()},
    }


def calls_that(record: AgentRecord | None, end: CallEnd) -> int | None:
    """How many calls of all turns ended so; None without a record, or where some of its calls were let go."""
    if record is None or not record.turns or any(turn.calls_truncated for turn in record.turns):
        return None
    return sum(call.end is end for turn in record.turns for call in turn.calls)


def _usage(record: AgentRecord | None, journal: Journal | None) -> dict[str, Scalar]:
    totals: list[int | None] = [receipt.claimed_total for receipt in journal.receipts] if journal else []
    costs: list[float | None] = []
    if record is not None:
        usages = [turn.usage for turn in record.turns]
        totals = [usage.input + usage.output if usage else None for usage in usages]
        costs = [usage.cost_usd if usage else None for usage in usages]
    told = [total for total in totals if total is not None]
    if not told or len(told) < len(totals):
        return {"receiptUsage.measured": False, **dict.fromkeys(_KEYS)}
    spent = [cost for cost in costs if cost is not None]
    whole = sum(spent) if spent and len(spent) == len(costs) else None
    if max(sum(told), whole or 0) > SAFE:
        # Claims that together are more than a receipt can carry.
        return {"receiptUsage.measured": False, **dict.fromkeys(_KEYS)}
    return {"receiptUsage.measured": True, **dict(zip(_KEYS, (len(told), sum(told), whole), strict=True))}
