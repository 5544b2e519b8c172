"""What a person decided: a statement in an envelope of its own, by a key that the verifier trusts (V41)."""

from __future__ import annotations

from typing import Any, Literal

from boxeval.receipts.canonical import MalformedError, canonical_json, read
from boxeval.receipts.envelope import Signed, pae, sign
from boxeval.receipts.keys import SigningKey
from boxeval.receipts.trust import Trust, instant
from boxeval.rules.human import misfit
from boxeval.spec.checks import HumanCheck
from boxeval.spec.judged import HumanVerdict
from boxeval.spec.plan import PlannedTask
from boxeval.spec.trial import Trial

PAYLOAD_TYPE = "application/vnd.boxeval.human+json"
MAX_BYTES = 64 * 1024


class HumanEnvelope(Signed):
    """Around a `HumanVerdict`."""

    payload_type: Literal["application/vnd.boxeval.human+json"] = "application/vnd.boxeval.human+json"


def signed(statement: HumanVerdict, key: SigningKey) -> HumanEnvelope:
    """Sign a statement."""
    return HumanEnvelope(**sign(PAYLOAD_TYPE, statement, key))


def sealed_form(envelope: HumanEnvelope) -> dict[str, Any]:
    """An envelope as `CheckSeen.value` holds it."""
    return envelope.model_dump(mode="json", by_alias=True)


def statement(envelope: HumanEnvelope, trust: Trust) -> HumanVerdict:
    """The statement, if a key that is trusted signed it while it was in force. `MalformedError` says why not."""
    key = trust.find(envelope.keyid)
    if key is None:
        raise MalformedError(f"signed by {envelope.keyid[:16]}, whom nobody vouches for")
    if key.revoked:
        raise MalformedError(f"signed by {key.name}, which is revoked")
    if not key.verifies(envelope.signature, pae(PAYLOAD_TYPE, envelope.payload_bytes)):
        raise MalformedError("its signature does not hold")
    said = read(HumanVerdict, envelope.payload_bytes)
    try:
        covered = key.covers(instant(said.at))
    except ValueError:
        raise MalformedError(f"is of {said.at!r}, which is no time") from None
    if not covered:
        raise MalformedError(f"is of {said.at}, when {key.name} was not in force")
    return said


def read_envelope(data: bytes) -> HumanEnvelope:
    """Read a file's bytes, strictly. `MalformedError` says what is wrong."""
    return read(HumanEnvelope, data.removesuffix(b"\n"))


def people_fault(run_id: str, task: PlannedTask, trial: Trial, trust: Trust) -> str | None:
    """Why a person's statement in a trial does not count; None if all do."""
    for check, found in zip(task.verify.checks, trial.observations.checks, strict=False):
        if not isinstance(check, HumanCheck) or found.value is None:
            continue
        try:
            said = statement(read(HumanEnvelope, canonical_json(found.value)), trust)
            fault = misfit(said, check, run_id, trial.trial_id, trial.observations)
        except MalformedError as error:
            fault = str(error)
        if fault:
            return f"the person's statement on check {check.id}: {fault}"
    return None
