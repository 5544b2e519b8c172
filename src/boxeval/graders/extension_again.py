"""An extension's sealed results held against the answers that were kept: what `boxeval verify` does again."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import ValidationError

from boxeval.graders.extension_checks import judged, unjudged
from boxeval.graders.extension_exchange import ProtocolFault, read_answer
from boxeval.graders.extension_rules import check_evaluation, negotiate
from boxeval.spec.extension import (
    DescribeResult,
    EvaluateResult,
    Method,
)
from boxeval.spec.extension_messages import (
    REQUESTS,
    DescribeRequest,
    EvaluateRequest,
    Request,
    Result,
)
from boxeval.spec.extension_use import ExchangeSeen, ExtensionSeen, ExtensionUse, Negotiated
from boxeval.spec.graded import CheckStatus

Blob = Callable[[str], bytes]
"""The bytes of a blob by its digest."""


def extension_fault(use: ExtensionUse, seen: ExtensionSeen, blob: Blob) -> str | None:
    """What does not follow from the kept requests and answers; None if all does."""
    try:
        return _fault(use, seen, blob)
    except ValidationError:
        return "a request to the extension cannot be read"


def _fault(use: ExtensionUse, seen: ExtensionSeen, blob: Blob) -> str | None:
    due = ExtensionSeen(sources=seen.sources, negotiated=seen.negotiated, exchanges=seen.exchanges)
    for one in seen.exchanges:
        request, told = _read(one, blob)
        if isinstance(request, DescribeRequest) and _who(use, request, told) != seen.negotiated:
            return "who the extension is does not follow from its answer"
        if isinstance(request, EvaluateRequest):
            due = _due(use, due, one, request, told)
    without_words = {"checks": (), "changed": False}
    if seen.changed or not any(one.method is Method.EVALUATE for one in seen.exchanges):
        # Nothing was answered that counts, so nothing but an error may stand there.
        bare = seen.model_copy(update=without_words) == due.model_copy(update=without_words)
        is_error = all(check.status is CheckStatus.ERROR for check in seen.checks)
        return None if is_error and (bare or seen.changed) else "the extension's checks have no answer"
    return None if seen == due else "the extension's checks do not follow from its answer"


def _read(one: ExchangeSeen, blob: Blob) -> tuple[Request, Result | ProtocolFault]:
    request = REQUESTS[one.method].model_validate_json(blob(one.request))
    kept = one.box.commands[0].stdout.kept if one.box.commands else None
    try:
        return request, read_answer(request, one.box, blob(kept) if kept else b"")
    except ProtocolFault as fault:
        return request, fault


def _who(use: ExtensionUse, request: DescribeRequest, told: Result | ProtocolFault) -> Negotiated | None:
    try:
        return (
            negotiate(use.protocol, request.params, told, use) if isinstance(told, DescribeResult) else None
        )
    except ProtocolFault:
        return None


def _due(
    use: ExtensionUse,
    bare: ExtensionSeen,
    one: ExchangeSeen,
    request: EvaluateRequest,
    told: Result | ProtocolFault,
) -> ExtensionSeen:
    """The record with the results that this answer gives."""
    if isinstance(told, EvaluateResult) and bare.negotiated is not None:
        try:
            check_evaluation(request.params, told, bare.negotiated, use.due)
        except ProtocolFault as fault:
            told = fault
        else:
            return judged(bare, use, bare.negotiated, request.params, told)
    return unjudged(bare, str(told), one.box)
