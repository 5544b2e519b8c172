"""A person's verdict on a check: a signed statement, which receipts keep as it was signed."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from typing import Any

import rfc8785

from boxeval.rules.json_values import NotJson, parse
from boxeval.spec.checks import HumanCheck
from boxeval.spec.graded import EXCERPT, CheckStatus, CheckVerdict
from boxeval.spec.judged import HumanVerdict
from boxeval.spec.trial import Observations

_OPEN = (CheckStatus.ERROR, CheckStatus.UNAVAILABLE)
AWAITED = "a person has not decided yet; see `boxeval grade`"


def human_verdict(check: HumanCheck, value: Any) -> CheckVerdict:
    """What a person's signed statement comes to; unavailable without one. `receipts.human` checks the signature."""
    if value is None:
        return CheckVerdict(status=CheckStatus.UNAVAILABLE, reason=AWAITED)
    try:
        said = statement_of(value)
    except ValueError as fault:
        return CheckVerdict(status=CheckStatus.ERROR, reason=f"the person's statement {fault}")
    if said.verdict == "pass":
        return CheckVerdict(status=CheckStatus.PASSED)
    return CheckVerdict(
        status=CheckStatus.FAILED,
        reason=f"{said.by} says: {said.reason[:EXCERPT]}",
        expected=check.configuration.question[:EXCERPT],
        received="fail",
    )


def statement_of(value: Any) -> HumanVerdict:
    """The statement inside an envelope, unchecked. Raises `ValueError` if there is none in it."""
    payload = value.get("payload") if isinstance(value, dict) else None
    if not isinstance(payload, str):
        raise ValueError("is no envelope")
    try:
        data = parse(base64.b64decode(payload, validate=True).decode("utf-8"))
        return HumanVerdict.model_validate_json(json.dumps(data))
    except (binascii.Error, UnicodeDecodeError, NotJson, ValueError):
        raise ValueError("is not in the form of boxeval.human/1") from None


def misfit(
    said: HumanVerdict, check: HumanCheck, run_id: str, trial_id: str, seen: Observations
) -> str | None:
    """Why a statement is about something else; None if it is about this check of this trial."""
    wanted = {
        "run_id": run_id,
        "trial_id": trial_id,
        "check": check.id,
        "question": question_digest(check),
        "evidence": evidence_digest(seen),
    }
    for name, value in wanted.items():
        if getattr(said, name) != value:
            return f"is about another {name.removesuffix('_id')}"
    return None


def awaits_person(seen: Observations) -> bool:
    """Whether nothing but a person's verdict is missing for one of a trial."""
    open_checks = [check for check in seen.checks if check.status in _OPEN]
    waits = [check for check in open_checks if check.grader == "boxeval.human" and check.value is None]
    return bool(waits) and len(waits) == len(open_checks)


def question_digest(check: HumanCheck) -> str:
    """SHA-256 over the question as UTF-8."""
    return hashlib.sha256(check.configuration.question.encode()).hexdigest()


def evidence_digest(seen: Observations) -> str:
    """SHA-256 over what there was to look at: the final message and the changes, by their digests."""
    shown = {
        "message": seen.message.model_dump(mode="json") if seen.message else None,
        "collected": seen.collected.model_dump(mode="json") if seen.collected else None,
    }
    return hashlib.sha256(rfc8785.dumps(shown)).hexdigest()
