"""The registry of metrics (contract S21-S31)."""

from __future__ import annotations

import pytest

from boxeval.spec.metrics import METRICS, did_you_mean, nearest

NAMES = """
tokens.input tokens.output tokens.total tokens.cacheRead tokens.cacheWrite tokens.measured
receiptUsage.measured receiptUsage.receiptCount receiptUsage.totalTokens receiptUsage.costUsd
latency.wallMs latency.modelMs cost.usd tools.totalCalls tools.failed tools.blocked
patch.filesChanged patch.testFilesModified patch.bytes verifier.exitCode result.pass result.failureClass
receipt.sealed receipt.count receipt.integrityValid receipt.outcomeMatchesExit
receipt.rootCount receipt.recoveryCount
process.orphanedChildren process.attestedWorkers
stream.cumulativeSnapshots stream.usageDoubleCounted stream.segmentUsageMatchesMessages
ledger.formatVersion ledger.toolPairsUnmatched ledger.assistantBetweenCallAndResult ledger.sessionCount
continuity.compactionSummaryPresent continuity.answeredFromPreCompaction
checks.total checks.passed checks.failed checks.score
boundary.verdictCount boundary.verdictSealed boundary.violationsDetected boundary.violationsRolledBack
boundary.rollbackIncomplete loop.count loop.attemptsSpent loop.repairsSpent loop.receiptsMatchRepairs
loop.skippedNodes loop.unneededNodes loop.reasonDeclared loop.resolved
chaos.seed chaos.faultInjected chaos.exitCode
context.indexedFiles context.coverage context.structuralHash context.digestTokens task.solved task.exitCode
"""


@pytest.mark.contract("S31")
def test_every_metric_of_the_contract_is_registered_and_explained() -> None:
    assert sorted(METRICS) == sorted(NAMES.split())
    for metric in METRICS.values():
        assert metric.meaning.endswith(".")
        assert metric.source


@pytest.mark.parametrize(
    ("name", "value", "fits"),
    [
        ("tokens.total", 1, True),
        ("tokens.total", 1.5, True),
        ("tokens.total", True, False),
        ("tokens.total", "1", False),
        ("result.pass", True, True),
        ("result.pass", 1, False),
        ("result.failureClass", "none", True),
        ("result.failureClass", False, False),
    ],
)
def test_values_are_strict_in_type(name: str, value: object, fits: bool) -> None:
    assert METRICS[name].accepts(value) is fits


@pytest.mark.contract("S15")
def test_the_nearest_name() -> None:
    assert nearest("tokens.totl", METRICS) == "tokens.total"
    assert nearest("Tokens.Total", METRICS) == "tokens.total"
    assert nearest("zzz", METRICS) is None
    assert did_you_mean("task.solve", METRICS) == "; did you mean `task.solved`?"
    assert did_you_mean("zzz", METRICS) == ""
