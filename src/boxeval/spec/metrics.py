"""Every metric by name (S31): type, unit, meaning and source.

docs/metrics.md is generated from here. A metric that is not measured is null; every comparison with it fails.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

MetricType = Literal["number", "bool", "string"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric."""

    name: str
    type: MetricType
    unit: str
    meaning: str
    source: str

    def accepts(self, value: object) -> bool:
        """Whether a value of this Python type can equal the metric (eq and neq are strict in type)."""
        if isinstance(value, bool):
            return self.type == "bool"
        return isinstance(value, str if self.type == "string" else (int, float)) and self.type != "bool"


_WIRE = "the gateway, counted on the wire"
_JOURNAL = "the agent's own journal"
_AGENT = "what the agent says of itself"
_DIFF = "the snapshot diff"
_CONTROLLER = "the controller"
_CGROUP = "the box's cgroup"
_CHECKS = "`verify.checks`"
_BOUNDARY = "the write boundary's verdicts"

_ROWS: tuple[tuple[str, MetricType, str, str, str], ...] = (
    ("tokens.input", "number", "tokens", "Input tokens of all model requests, cached ones too.", _WIRE),
    ("tokens.output", "number", "tokens", "Output tokens of all model requests.", _WIRE),
    ("tokens.total", "number", "tokens", "Input and output tokens together.", _WIRE),
    ("tokens.cacheRead", "number", "tokens", "Input tokens read from a cache.", _WIRE),
    ("tokens.cacheWrite", "number", "tokens", "Input tokens written to a cache.", _WIRE),
    ("tokens.measured", "bool", "", "Whether the token counts were measured.", _WIRE),
    ("latency.wallMs", "number", "ms", "Wall time of the trial.", _CONTROLLER),
    ("latency.modelMs", "number", "ms", "Time spent in model requests.", _WIRE),
    ("cost.usd", "number", "USD", "Cost of all model requests; null if that of any is not known.", _WIRE),
    ("tools.totalCalls", "number", "calls", "Tool calls, each call id once.", _WIRE),
    (
        "tools.failed",
        "number",
        "calls",
        "Tool calls that failed; null where neither tells.",
        "the agent's own journal, else the wire",
    ),
    (
        "stream.cumulativeSnapshots",
        "number",
        "pieces",
        "Pieces of text that repeat all that came before.",
        _WIRE,
    ),
    ("stream.usageDoubleCounted", "bool", "", "Whether an answer told its usage more than once.", _WIRE),
    (
        "stream.segmentUsageMatchesMessages",
        "bool",
        "",
        "Whether the usage of all answers is that of all different messages.",
        _WIRE,
    ),
    (
        "patch.filesChanged",
        "number",
        "files",
        "Paths of the work tree created, modified or deleted; mode and links count.",
        _DIFF,
    ),
    ("patch.testFilesModified", "number", "files", "Changed paths that look like tests.", _DIFF),
    ("patch.bytes", "number", "bytes", "Size of the patch; null if there is none.", _DIFF),
    ("verifier.exitCode", "number", "", "Exit code of the last verify command that ran.", "the grader box"),
    ("result.pass", "bool", "", "Whether the task passed.", _CONTROLLER),
    ("result.failureClass", "string", "", "Class of the first failure.", _CONTROLLER),
    ("process.orphanedChildren", "number", "processes", "Alive when the main process ended.", _CGROUP),
    ("task.solved", "bool", "", "Whether `verify.measure` exited 0.", "verify.measure"),
    ("task.exitCode", "number", "", "Exit code of `verify.measure`.", "verify.measure"),
    ("checks.total", "number", "checks", "Checks that were graded.", _CHECKS),
    ("checks.passed", "number", "checks", "Checks that passed.", _CHECKS),
    ("checks.failed", "number", "checks", "Checks that failed.", _CHECKS),
    ("checks.score", "number", "", "Mean score of all checks; null if one has no verdict.", _CHECKS),
    ("boundary.verdictCount", "number", "verdicts", "Write boundary verdicts.", _BOUNDARY),
    ("boundary.verdictSealed", "bool", "", "Whether every verdict's digest recomputes.", _BOUNDARY),
    ("boundary.violationsDetected", "number", "paths", "Changes outside the allowed paths.", _BOUNDARY),
    ("boundary.violationsRolledBack", "number", "paths", "Violations that were undone.", _BOUNDARY),
    (
        "boundary.rollbackIncomplete",
        "number",
        "steps",
        "Steps where something could not be undone.",
        _BOUNDARY,
    ),
    ("tools.blocked", "number", "calls", "Tool calls that permissions refused.", _JOURNAL),
    ("receipt.sealed", "bool", "", "Whether the agent sealed its run.", _JOURNAL),
    ("receipt.count", "number", "receipts", "Receipts that the agent wrote.", _JOURNAL),
    ("receipt.integrityValid", "bool", "", "Whether the agent's receipts verify.", _JOURNAL),
    ("receipt.outcomeMatchesExit", "bool", "", "Whether sealed outcome and exit code agree.", _JOURNAL),
    ("receipt.rootCount", "number", "receipts", "Receipts without a parent.", _JOURNAL),
    ("receipt.recoveryCount", "number", "receipts", "Receipts of recoveries.", _JOURNAL),
    ("process.attestedWorkers", "number", "processes", "Worker processes that the agent attested.", _JOURNAL),
    ("ledger.formatVersion", "number", "", "Version of the agent's session ledger.", _JOURNAL),
    (
        "ledger.toolPairsUnmatched",
        "number",
        "calls",
        "Tool calls without a result, or the reverse.",
        _JOURNAL,
    ),
    (
        "ledger.assistantBetweenCallAndResult",
        "number",
        "messages",
        "Messages between a call and its result.",
        _JOURNAL,
    ),
    ("ledger.sessionCount", "number", "sessions", "Sessions in the agent's ledger.", _JOURNAL),
    ("continuity.compactionSummaryPresent", "bool", "", "Whether a compaction left a summary.", _JOURNAL),
    ("continuity.answeredFromPreCompaction", "bool", "", "Whether facts from before it were kept.", _JOURNAL),
    ("loop.count", "number", "loops", "Verification loops.", _JOURNAL),
    ("loop.attemptsSpent", "number", "attempts", "Verifications made.", _JOURNAL),
    ("loop.repairsSpent", "number", "repairs", "Repairs made.", _JOURNAL),
    ("loop.receiptsMatchRepairs", "bool", "", "Whether each repair has a receipt.", _JOURNAL),
    ("loop.skippedNodes", "number", "nodes", "Nodes that were skipped.", _JOURNAL),
    ("loop.unneededNodes", "number", "nodes", "Nodes that were not needed.", _JOURNAL),
    ("loop.reasonDeclared", "bool", "", "Whether the loop says why it ended.", _JOURNAL),
    ("loop.resolved", "bool", "", "Whether the loop ended in success.", _JOURNAL),
    ("chaos.seed", "number", "", "Seed of the fault schedule.", _CONTROLLER),
    ("chaos.faultInjected", "bool", "", "Whether the fault happened.", _CONTROLLER),
    ("chaos.exitCode", "number", "", "Exit code of the main process after the fault.", _CONTROLLER),
    ("receiptUsage.measured", "bool", "", "Whether the agent tells its usage, of every turn.", _AGENT),
    (
        "receiptUsage.receiptCount",
        "number",
        "receipts",
        "Turns, or receipts of its own ledger, that tell usage.",
        _AGENT,
    ),
    ("receiptUsage.totalTokens", "number", "tokens", "Tokens as the agent counted them.", _AGENT),
    ("receiptUsage.costUsd", "number", "USD", "Cost as the agent counted it.", _AGENT),
    ("context.indexedFiles", "number", "files", "Files in the agent's index.", _AGENT),
    ("context.coverage", "number", "ratio", "Share of the tree that is indexed.", _AGENT),
    ("context.structuralHash", "string", "", "Hash of the index's structure.", _AGENT),
    ("context.digestTokens", "number", "tokens", "Size of the index's digest.", _AGENT),
)

METRICS: dict[str, Metric] = {row[0]: Metric(*row) for row in _ROWS}


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like `name`, or None if none is near."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    found = difflib.get_close_matches(name[:200].casefold(), by_folded, n=1)
    return by_folded[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean X?` for the end of a message, or nothing."""
    found = nearest(name, known)
    return f"; did you mean `{found}`?" if found else ""
