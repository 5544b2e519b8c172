"""`boxeval.semantic` and `boxeval.model`: a model judges what the candidate left (G24-G30, V41)."""

from __future__ import annotations

import base64
import binascii

from boxeval.graders.files import answer_of, look
from boxeval.graders.interface import Bench, Phase, seen_of
from boxeval.rules.box_checks import box_error
from boxeval.rules.check_consistency import unavailable
from boxeval.rules.file_checks import TIMEOUT_MS
from boxeval.rules.judging import Exchange, exchanges, judged_verdict
from boxeval.spec.checks import JudgedCheck
from boxeval.spec.graded import CheckSeen
from boxeval.spec.judged import DOCUMENT_BYTES

_ANSWER_BYTES = 2 * DOCUMENT_BYTES
"""Base64 and a path."""


class JudgedGrader:
    """Checks of one source share one exchange; without a complete final message the judge is not called (G28)."""

    phase = Phase.SEMANTIC

    def grade(self, check: JudgedCheck, bench: Bench) -> CheckSeen:
        """Decide from the exchange that the check belongs to."""
        if verdict := unavailable(bench.message):
            return seen_of(check, verdict)
        exchange = next(one for one in exchanges(bench.declared) if check in one.checks)
        judged = bench.judge(exchange)
        evidence = (judged.document,) if judged.document else ()
        return seen_of(check, judged_verdict(check, bench.declared, (judged,)), evidence=evidence)


class NoDocument(Exception):
    """The document of an exchange cannot be shown to the judge; says why."""


def document_of(exchange: Exchange, bench: Bench) -> tuple[str, bytes]:
    """Name and bytes of the document that `artifactPath` names. Raises `NoDocument` (G29)."""
    configuration = {"artifactPath": exchange.source}
    ran = look(bench, "boxeval.semantic", configuration, _ANSWER_BYTES)
    if error := box_error(ran.result, TIMEOUT_MS):
        raise NoDocument(f"{exchange.source}: {error.reason}")
    answer = answer_of(ran.stdout) or {}
    if "found" in answer:
        raise NoDocument(f"{exchange.source}: there is no such file")
    if isinstance(fault := answer.get("fault"), str):
        raise NoDocument(f"{exchange.source}: {fault}")
    try:
        return str(answer["path"]), base64.b64decode(answer["base64"], validate=True)
    except (KeyError, TypeError, binascii.Error):
        raise NoDocument(f"{exchange.source}: the program that reads it gave no answer") from None
