"""What an extension says, as checks like all others. Pure, so that `verify` can do it again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from boxeval.receipts.canonical import canonical
from boxeval.spec.box import BoxResult
from boxeval.spec.extension import (
    MESSAGE_BYTES,
    EvaluateParams,
    EvaluateResult,
)
from boxeval.spec.extension_use import FAULT, ExtensionSeen, ExtensionUse, Negotiated
from boxeval.spec.graded import CheckSeen, CheckStatus, EvidencePart


def judged(
    seen: ExtensionSeen, use: ExtensionUse, who: Negotiated, asked: EvaluateParams, told: EvaluateResult
) -> ExtensionSeen:
    """The record of a trial with what the extension found."""
    return seen.model_copy(
        update={
            "checks": checks_of(use, who, asked, told),
            "metrics": told.metrics,
            "domain_outcomes": told.domain_outcomes,
            "recommendation": told.task_verdict_recommendation,
        }
    )


def unjudged(seen: ExtensionSeen, reason: str, box: BoxResult | None) -> ExtensionSeen:
    """The record of a trial of which the extension gave nothing to grade by."""
    return seen.model_copy(update={"checks": (fault_check(reason, box),)})


def checks_of(
    use: ExtensionUse, who: Negotiated, asked: EvaluateParams, told: EvaluateResult
) -> tuple[CheckSeen, ...]:
    """Its checks in its own order, then one that is unavailable for each that it should have answered."""
    evidence = dict(_digests(asked))
    found = [
        CheckSeen(
            id=check.id,
            grader=who.id,
            status=CheckStatus(check.status),
            reason=check.detail,
            evidence=tuple(EvidencePart(name=name, sha256=evidence[name]) for name in check.evidence_refs),
        )
        for check in told.checks
    ]
    answered = {check.id for check in found}
    lacking = [name for name in use.due if name not in answered]
    if not found and not lacking and use.verdict_policy is None:
        lacking = [FAULT]
    found += [
        CheckSeen(
            id=name, grader=who.id, status=CheckStatus.UNAVAILABLE, reason="the extension did not answer it"
        )
        for name in lacking
    ]
    return tuple(found)


def fault_check(reason: str, box: BoxResult | None) -> CheckSeen:
    """The one check of an extension that gave nothing to grade by; `box` is that of its last process."""
    command = box.commands[0] if box and box.commands else None
    limit = None
    if command and command.timed_out:
        limit = "time"
    elif box and box.oom_kills:
        limit = "memory"
    elif command and command.stdout.size_bytes > MESSAGE_BYTES:
        limit = "output"
    given = {"id": FAULT, "grader": FAULT, "status": "error", "reason": reason, "limit": limit}
    return CheckSeen.model_validate(given)


def _digests(asked: EvaluateParams) -> Iterator[tuple[str, str]]:
    """The digest of each thing that a check may cite: of an artifact's bytes, else of what the request says of it."""
    for observation in asked.observations:
        yield observation.id, hashlib.sha256(canonical(observation)).hexdigest()
    for check in asked.builtin_checks:
        yield check.id, hashlib.sha256(canonical(check)).hexdigest()
    for artifact in asked.artifacts:
        yield artifact.id, artifact.sha256
