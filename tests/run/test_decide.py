"""A person decides: signed, bound to the check and its evidence, sealed as another attempt, verified like the rest."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import run_samples as samples
from boxeval.cli.app import call
from boxeval.errors import TamperError, UsageError
from boxeval.receipts.envelope import pae
from boxeval.receipts.human import PAYLOAD_TYPE, HumanEnvelope
from boxeval.receipts.keys import SigningKey, make_key
from boxeval.receipts.recovery import Recovery
from boxeval.receipts.trust import Trust
from boxeval.receipts.verify import VerifiedRun, verify
from boxeval.run.decide import apply, awaited, find, read_statement, stated
from boxeval.settings import load_settings
from boxeval.spec.checks import HumanCheck, HumanConfiguration
from boxeval.spec.graded import CheckSeen, FinalMessage, MessageStatus
from boxeval.spec.trial import Observations
from boxeval.verdicts.aggregate import aggregate, exit_code

OPERATOR = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
PERSON = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33))))
STRANGER = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(range(2, 34))))
TRUST = Trust((OPERATOR.trusted("machine"), PERSON.trusted("Ada")))


def human(name: str, question: str = "Is it kind?") -> HumanCheck:
    return HumanCheck(id=name, grader="boxeval.human", configuration=HumanConfiguration(question=question))


def waiting(*names: str) -> Observations:
    checks = tuple(
        CheckSeen.model_validate(
            {
                "id": name,
                "grader": "boxeval.human",
                "status": "unavailable",
                "reason": "a person has not decided yet; see `boxeval grade`",
            }
        )
        for name in names
    )
    message = FinalMessage(status=MessageStatus.MISSING, reason="the candidate printed nothing")
    return samples.seen(checks=checks, grader=None, message=message)


def write(directory: Path, *names: str, close: bool = True) -> Path:
    task = samples.task(verify={"checks": tuple(human(name) for name in names)})
    plan = samples.plan(task)
    samples.write_run(directory, OPERATOR, plan, {"fix-base-1": waiting(*names)}, close=close)
    return directory


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write(tmp_path / "run", "kind")


def decide(
    directory: Path, verdict: Any = "pass", check: str | None = None, key: SigningKey = PERSON
) -> VerifiedRun:
    found = verify(directory, TRUST)
    one = find(found, "fix-base-1", check)
    envelope = stated(found, one, verdict, "It is.", "Ada", key, now=lambda: samples.NOON)
    apply(directory, TRUST, one, envelope, OPERATOR)
    return verify(directory, TRUST)


@pytest.mark.contract("V41")
def test_until_somebody_decides_the_trial_is_unavailable(run: Path) -> None:
    found = verify(run, TRUST)
    outcome = found.trials[0].outcome
    assert (outcome.execution.value, outcome.grading.value, outcome.task.value, outcome.weight.value) == (
        "completed",
        "unavailable",
        "not_assessed",
        "void",
    )
    assert [(one.trial.trial_id, one.check.id) for one in awaited(found)] == [("fix-base-1", "kind")]
    assert exit_code(aggregate(found)) == 3


@pytest.mark.contract("V41")
@pytest.mark.parametrize(("verdict", "task", "code"), [("pass", "passed", 0), ("fail", "failed", 1)])
def test_a_signed_verdict_decides(run: Path, verdict: str, task: str, code: int) -> None:
    found = decide(run, verdict)
    assert found.complete
    assert [trial.attempt for trial in found.trials] == [1, 2]
    report = aggregate(found)
    assert report.trials[0].outcome.task.value == task
    assert report.trials[0].outcome.weight.value == "scored"
    assert exit_code(report) == code
    assert awaited(found) == ()


@pytest.mark.contract("V41")
def test_the_signed_file_stays_in_the_run(run: Path) -> None:
    decide(run)
    kept = json.loads((run / "verdicts" / "fix-base-1.kind.json").read_text())
    payload = base64.b64decode(kept["payload"])
    said = json.loads(payload)
    assert (said["verdict"], said["reason"], said["by"], said["check"]) == ("pass", "It is.", "Ada", "kind")
    signature = base64.b64decode(kept["signatures"][0]["sig"])
    PERSON.private.public_key().verify(signature, pae(PAYLOAD_TYPE, payload))


def test_a_statement_signed_elsewhere_is_taken_from_its_file(run: Path, tmp_path: Path) -> None:
    found = verify(run, TRUST)
    one = find(found, "fix[base]#1", None)
    file = tmp_path / "ada.json"
    envelope = stated(found, one, "fail", "No.", "Ada", PERSON, now=lambda: samples.NOON)
    file.write_text(
        json.dumps(envelope.model_dump(mode="json", by_alias=True), separators=(",", ":"), sort_keys=True)
    )
    assert read_statement(file) == envelope
    file.write_text('{"payload": 1}')
    with pytest.raises(UsageError, match="is not a person's signed verdict"):
        read_statement(file)


def test_each_of_several_checks_waits_for_its_own_verdict(tmp_path: Path) -> None:
    run = write(tmp_path / "run", "kind", "true")
    with pytest.raises(UsageError, match="several checks wait for a person: `kind`, `true`"):
        find(verify(run, TRUST), "fix-base-1", None)
    first = decide(run, check="kind")
    assert first.trials[-1].outcome.weight.value == "void"
    assert [one.check.id for one in awaited(first)] == ["true"]
    second = decide(run)
    assert second.trials[-1].outcome.task.value == "passed"


def test_a_decided_check_cannot_be_decided_again(run: Path) -> None:
    before = verify(run, TRUST)
    one = find(before, "fix-base-1", None)
    envelope = stated(before, one, "fail", "No.", "Ada", PERSON, now=lambda: samples.NOON)
    decide(run)
    with pytest.raises(UsageError, match="no trial of this run waits for a person on check `kind`"):
        apply(run, TRUST, one, envelope, OPERATOR)
    assert [trial.outcome.task.value for trial in verify(run, TRUST).trials] == ["not_assessed", "passed"]


@pytest.mark.parametrize("key", [STRANGER])
def test_a_statement_of_a_key_that_nobody_vouches_for_does_not_count(run: Path, key: SigningKey) -> None:
    before = (run / "ledger.jsonl").read_bytes()
    with pytest.raises(TamperError, match="whom nobody vouches for"):
        decide(run, key=key)
    assert (run / "ledger.jsonl").read_bytes() == before


@pytest.mark.contract("V41")
def test_a_sealed_statement_is_held_against_the_verifiers_keys(run: Path) -> None:
    decide(run)
    revoked = Trust((OPERATOR.trusted("machine"), PERSON.trusted("Ada").model_copy(update={"revoked": True})))
    with pytest.raises(TamperError, match=r"statement on check kind: signed by Ada .* which is revoked"):
        verify(run, revoked)
    with pytest.raises(TamperError, match="whom nobody vouches for"):
        verify(run, Trust((OPERATOR.trusted("machine"),)))


def test_a_statement_about_another_run_trial_question_or_evidence_is_refused(
    run: Path, tmp_path: Path
) -> None:
    task = samples.task(verify={"checks": (human("kind"),)})
    other = samples.plan(task, run_id="run-2")
    samples.write_run(tmp_path / "other", OPERATOR, other, {"fix-base-1": waiting("kind")})
    found = verify(tmp_path / "other", TRUST)
    envelope = stated(
        found, find(found, "fix-base-1", None), "pass", "y", "Ada", PERSON, now=lambda: samples.NOON
    )
    one = find(verify(run, TRUST), "fix-base-1", None)
    with pytest.raises(TamperError, match="is about another run"):
        apply(run, TRUST, one, envelope, OPERATOR)


@pytest.mark.parametrize("field", ["payload", "sig"])
def test_a_changed_statement_does_not_hold(run: Path, field: str) -> None:
    found = verify(run, TRUST)
    one = find(found, "fix-base-1", None)
    envelope = stated(found, one, "fail", "No.", "Ada", PERSON, now=lambda: samples.NOON)
    data = envelope.model_dump(mode="json", by_alias=True)
    if field == "payload":
        payload = base64.b64decode(data["payload"]).replace(b'"fail"', b'"pass"')
        data["payload"] = base64.b64encode(payload).decode()
    else:
        data["signatures"][0]["sig"] = base64.b64encode(bytes(64)).decode()
    with pytest.raises(TamperError, match="its signature does not hold"):
        apply(run, TRUST, one, HumanEnvelope.model_validate_json(json.dumps(data)), OPERATOR)


def test_a_resumed_run_leaves_what_waits_for_a_person(run: Path) -> None:
    with Recovery(run, TRUST) as recovery:
        assert recovery.remaining == ()


def test_a_run_that_is_not_closed_is_finished_first(tmp_path: Path) -> None:
    run = write(tmp_path / "run", "kind", close=False)
    with pytest.raises(UsageError, match="finish it first with `boxeval run --resume`"):
        decide(run)


def test_no_other_key_than_the_run_s_goes_on_with_it(run: Path) -> None:
    """A line by a second key would make the whole ledger one that nobody can verify."""
    found = verify(run, TRUST)
    one = find(found, "fix-base-1", None)
    envelope = stated(found, one, "pass", "It is.", "Ada", PERSON, now=lambda: samples.NOON)
    before = (run / "ledger.jsonl").read_bytes()
    with pytest.raises(UsageError, match="no other goes on"):
        apply(run, TRUST, one, envelope, PERSON)
    assert (run / "ledger.jsonl").read_bytes() == before


def test_a_person_decides_with_a_key_of_their_own_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOXEVAL_HOME", str(tmp_path))
    settings = load_settings()
    machine, ada = make_key(settings, "machine"), make_key(settings, "Ada")
    plan = samples.plan(samples.task(verify={"checks": (human("kind"),)}))
    samples.write_run(settings.runs_dir / "run-1", machine, plan, {"fix-base-1": waiting("kind")})
    pem = settings.keys_dir / "signing" / f"{ada.keyid}.pem"
    said = ["--verdict", "pass", "--reason", "It is.", "--key", str(pem)]
    assert call(["grade", "run-1", "fix-base-1", *said]) == 0
    done = verify(settings.runs_dir / "run-1", Trust.local(settings))
    assert (done.complete, done.keyid) == (True, machine.keyid)
    assert done.trials[-1].outcome.task.value == "passed"
