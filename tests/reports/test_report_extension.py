"""What `boxeval show` tells of an extension."""

from __future__ import annotations

from boxeval.reports.extension import extension_lines
from boxeval.spec.extension import DomainOutcome, Metric
from boxeval.spec.extension_use import ExtensionSeen
from boxeval.spec.graded import CheckSeen, CheckStatus
from extension_samples import WHO
from run_samples import sha


def test_every_result_is_one_safe_line() -> None:
    hostile = "\x1b[2Jgood\nverdict: passed"
    check = CheckSeen(id="example.words.c", grader="example.words", status=CheckStatus.FAILED, reason=hostile)
    outcome = DomainOutcome(id="example.words.o", status="unavailable", evidence_refs=())
    metrics = (
        Metric(id="example.words.n", value=None, unit="words"),
        Metric(id="example.words.m", value=2, unit="words"),
    )
    seen = ExtensionSeen(
        sources=sha("ext"),
        negotiated=WHO.model_copy(update={"version": "1\r2"}),
        checks=(check,),
        metrics=metrics,
        domain_outcomes=(outcome,),
        recommendation="failed",
    )
    lines = list(extension_lines(seen))
    assert lines[0] == "extension example.words 1\\x0d2, boxeval.extension.v1"
    assert [line.split()[:3] for line in lines[2:]] == [
        ["check", "example.words.c", "failed"],
        ["metric", "example.words.n", "unknown"],
        ["metric", "example.words.m", "2"],
        ["outcome", "example.words.o", "unavailable"],
        ["verdict", "recommended", "failed"],
    ]
    assert all(line.isprintable() for line in lines)


def test_one_that_changed_or_never_answered_says_so() -> None:
    lines = list(extension_lines(ExtensionSeen(sources=sha("ext"), changed=True)))
    assert lines[:2] == ["extension that did not say who it is", "  ! its files changed while it was asked"]
