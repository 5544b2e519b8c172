"""Verification of checks: what was declared, what follows from the evidence, what grading again gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import run_samples as samples
from boxeval.errors import TamperError
from boxeval.receipts.keys import SigningKey
from boxeval.receipts.ledger import Ledger
from boxeval.receipts.trust import Trust
from boxeval.receipts.verify import VerifiedRun, verify
from boxeval.spec.checks import Check, RegexCheck
from boxeval.spec.graded import CheckVerdict
from boxeval.spec.trial import Observations

KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
REGEX = samples.declared("c", pattern="right")
EXACT = samples.declared("c", "boxeval.shell", run="cat a", expectExact="right")
CODE = samples.declared("c", "boxeval.shell", run="true")


def contains(check: Check, text: bytes) -> CheckVerdict:
    """Stands in for the graders: the text has the pattern, or is what is expected."""
    wanted = check.configuration.pattern if isinstance(check, RegexCheck) else "right"
    return CheckVerdict(status="passed" if wanted.encode() in text else "failed")


def sealed(
    directory: Path, declared: Check, text: bytes, regrade: Any = contains, **found: Any
) -> VerifiedRun:
    """Seal one trial whose candidate, or whose check, printed `text`, with a record of its check; then verify."""
    task = samples.task("t", verify={"checks": [declared]})
    ledger = Ledger.create(directory, samples.plan(task), KEY, now=lambda: samples.NOON)
    printed = samples.capture(text, ledger.blobs.put(text) if text else None)
    is_message = isinstance(declared, RegexCheck)
    agent = samples.box(samples.command(stdout=printed if is_message else samples.capture()))
    own = {} if is_message else {"box": samples.box(samples.command(found.pop("code", 0), stdout=printed))}
    record = samples.checked(found.pop("id", "c"), grader=declared.grader, **{**own, **found})
    observed = samples.seen(agent=agent, grader=None, checks=(record,))
    observed = observed.model_copy(update={"message": samples.message_of(task, observed)})
    ledger.append(samples.trial(task, observed))
    ledger.close()
    return verify(directory, Trust((KEY.trusted("test"),)), regrade=regrade)


@pytest.mark.contract("G71")
def test_verdicts_that_follow_are_good(tmp_path: Path) -> None:
    for number, (declared, text, found) in enumerate(
        [
            (REGEX, b"right", {}),
            (REGEX, b"wrong", {"status": "failed"}),
            (EXACT, b"right", {}),
            (EXACT, b"wrong", {"status": "failed"}),
            (CODE, b"", {}),
        ]
    ):
        run = sealed(tmp_path / str(number), declared, text, **found)
        assert (run.complete, run.notes) == (True, ())


@pytest.mark.parametrize(
    ("declared", "text", "found", "said"),
    [
        (REGEX, b"wrong", {}, "the verdict of check c is passed, and grading again gives failed"),
        (
            REGEX,
            b"right",
            {"status": "failed"},
            "the verdict of check c is failed, and grading again gives passed",
        ),
        (
            REGEX,
            b"right",
            {"status": "error", "reason": "said so"},
            "is error, and grading again gives passed",
        ),
        (REGEX, b"", {}, "the verdict of check c does not follow from its evidence"),
        (EXACT, b"wrong", {}, "the verdict of check c is passed, and grading again gives failed"),
        (CODE, b"", {"code": 1}, "the verdict of check c does not follow from its evidence"),
        (CODE, b"", {"status": "failed"}, "the verdict of check c does not follow from its evidence"),
        (CODE, b"", {"box": None}, "the verdict of check c does not follow from its evidence"),
    ],
)
def test_verdicts_that_do_not_follow_are_refused(
    tmp_path: Path, declared: Check, text: bytes, found: dict[str, Any], said: str
) -> None:
    with pytest.raises(TamperError) as caught:
        sealed(tmp_path / "run", declared, text, **found)
    assert said in str(caught.value)


def test_a_check_that_was_not_declared_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TamperError, match="the checks are not those that the task declares"):
        sealed(tmp_path / "run", REGEX, b"right", id="other")


def test_a_limit_of_another_machine_is_told_and_no_tampering(tmp_path: Path) -> None:
    late = {"status": "error", "reason": "grading used up its processor time", "limit": "time"}
    run = sealed(tmp_path / "a", REGEX, b"right", **late)
    assert run.notes == ("t[base]#1: check c ran into a limit: grading used up its processor time",)
    slow = CheckVerdict(status="error", reason="too slow here", limit="time")
    run = sealed(tmp_path / "b", REGEX, b"right", regrade=lambda *_: slow)
    assert run.notes == ("t[base]#1: check c ran into a limit: too slow here",)


def test_what_was_not_graded_again_is_told(tmp_path: Path) -> None:
    run = sealed(tmp_path / "a", REGEX, b"right", regrade=None)
    assert run.notes == ("t[base]#1: check c was not graded again: no graders were given",)
    whole = samples.capture(b"right")  # of which nothing was kept
    box = samples.box(samples.command(stdout=whole))
    run = sealed(tmp_path / "b", EXACT, b"", box=box)
    assert run.notes == ("t[base]#1: check c was not graded again: its text was not kept whole",)
    assert run.complete


def test_a_message_that_was_not_printed_is_refused(tmp_path: Path) -> None:
    task = samples.task("t", verify={"checks": [REGEX]})
    ledger = Ledger.create(tmp_path / "run", samples.plan(task), KEY, now=lambda: samples.NOON)
    text = ledger.blobs.put(b"right")
    message = {"status": "complete", "size_bytes": 5, "sha256": text}
    observed = Observations.model_validate(
        {**samples.seen(grader=None, checks=(samples.checked("c"),)).model_dump(), "message": message},
        strict=False,
    )
    ledger.append(samples.trial(task, observed))
    ledger.close()
    with pytest.raises(TamperError, match="the final message is not what the candidate printed"):
        verify(tmp_path / "run", Trust((KEY.trusted("test"),)), regrade=contains)
