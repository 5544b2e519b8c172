"""The code graders (V40): the verdict on what a trusted program found in a file of the workspace.

The program (`boxeval.graders.file_program`) runs in a box and tells facts: `{"found": false}`, `{"found": true,
"value": VALUE}`, `{"count": N}`, or `{"fault": TEXT}` for a file that is not as it should be, the candidate's doing.
"""

from __future__ import annotations

from typing import Any

from boxeval.rules.box_checks import box_error
from boxeval.rules.endings import describe, ended_badly
from boxeval.rules.json_values import equal, kind, shown
from boxeval.spec.box import BoxResult
from boxeval.spec.checks import (
    FileCheck,
    LogParseCheck,
    OutcomeCheck,
    ReadyCheck,
    StateCheck,
)
from boxeval.spec.graded import CheckStatus, CheckVerdict

TIMEOUT_MS = 30_000


def file_verdict(check: FileCheck, box: BoxResult | None, value: Any) -> CheckVerdict:
    """What the box and the program's answer come to."""
    if error := box_error(box, TIMEOUT_MS):
        return error
    if box is None or ended_badly(box) or not isinstance(value, dict):
        how = describe(box.commands[0]) if box and box.commands else "left no report"
        return CheckVerdict(status=CheckStatus.ERROR, reason=f"the program that reads the file {how}")
    if isinstance(fault := value.get("fault"), str):
        return _failed(f"{check.configuration.file}: {fault}", _wanted(check), None)
    try:
        return _verdict(check, value)
    except KeyError:
        return CheckVerdict(
            status=CheckStatus.ERROR, reason="the program that reads the file left out a fact"
        )


def _verdict(check: FileCheck, value: dict[str, Any]) -> CheckVerdict:
    if isinstance(check, StateCheck):
        return _state(check, value)
    if isinstance(check, ReadyCheck):
        held = value["found"] is check.configuration.ready
        there = "it is there" if value["found"] else "it is not there"
        return _either(held, there, _wanted(check), there)
    if isinstance(check, OutcomeCheck):
        return _outcome(check, value)
    count = value["count"]
    held = (
        count >= check.configuration.at_least
        if isinstance(check, LogParseCheck)
        else count <= check.configuration.at_most
    )
    return _either(held, f"{count} events match", _wanted(check), str(count))


def _state(check: StateCheck, value: dict[str, Any]) -> CheckVerdict:
    if not value["found"]:
        return _either(check.configuration.or_missing, "there is no such value", _wanted(check), "nothing")
    held = any(equal(value["value"], one) for one in check.configuration.one_of)
    return _either(held, "is none of the values that pass", _wanted(check), shown(value["value"]))


def _outcome(check: OutcomeCheck, value: dict[str, Any]) -> CheckVerdict:
    if not value["found"]:
        return _failed("there is no such value", _wanted(check), "nothing")
    found = value["value"]
    if kind(found) not in ("number", "boolean"):
        return _failed(f"is a {kind(found)}, and no number", _wanted(check), shown(found))
    score = min(max(float(found), 0.0), 1.0)
    verdict = _either(
        score >= check.configuration.at_least, f"the score is {score:g}", _wanted(check), shown(found)
    )
    return verdict.model_copy(update={"score": score})


def _wanted(check: FileCheck) -> str:
    if isinstance(check, StateCheck):
        return "one of " + shown(list(check.configuration.one_of))
    if isinstance(check, ReadyCheck):
        return f"{shown(check.configuration.member)} {'' if check.configuration.ready else 'not '}there"
    if isinstance(check, OutcomeCheck):
        return f"at least {check.configuration.at_least:g}"
    if isinstance(check, LogParseCheck):
        return f"at least {check.configuration.at_least} events"
    return f"at most {check.configuration.at_most} events"


def _either(held: bool, reason: str, wanted: str, found: str) -> CheckVerdict:
    return CheckVerdict(status=CheckStatus.PASSED) if held else _failed(reason, wanted, found)


def _failed(reason: str, wanted: str, found: str | None) -> CheckVerdict:
    return CheckVerdict(status=CheckStatus.FAILED, reason=reason, expected=wanted[:200], received=found)
