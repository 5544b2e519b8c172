"""Sealed runs of a case, made without an engine."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import run_samples as samples
from boxeval.receipts.blobs import BlobStore
from boxeval.receipts.keys import load_signing_key
from boxeval.receipts.trust import Trust
from boxeval.receipts.verify import VerifiedRun, verify
from boxeval.rules.identity import identified
from boxeval.settings import Settings, load_settings
from boxeval.spec.case_run import CaseRun, Route
from boxeval.spec.checks import RegexCheck, RegexConfiguration
from boxeval.spec.graded import FinalMessage, MessageStatus
from boxeval.spec.plan import Plan, PlannedImage
from boxeval.spec.trial import Observations

CHECK = RegexCheck(id="ready", grader="boxeval.regex", configuration=RegexConfiguration(pattern="^ready$"))
CASE = CaseRun(condition="passive", threshold=0.5, candidate=Route(host="reference", model="script:m.yaml"))
SAID, NOT_YET = b"ready\n", b"not yet\n"


def plan(trials: int = 1, checks: tuple[Any, ...] = (CHECK,), **case: Any) -> Plan:
    """A plan of one case, identity included."""
    run = CASE.model_copy(update=case)
    task = samples.task("say-ready", "reference", verify={"checks": checks}, dry=run.dry)
    images = {
        name: PlannedImage(name=name, image_id="sha256:1") for name in ("boxeval/base", "boxeval/grader")
    }
    return identified(samples.plan(task, repeats=trials, case=run, images=images))


def answered(status: str = "passed", **changes: Any) -> Observations:
    """A trial whose check came to `status` by what its candidate said; with `error` its grader ran out of time."""
    said = {"passed": SAID, "failed": NOT_YET, "error": SAID, "unavailable": b""}[status]
    sha256 = hashlib.sha256(said).hexdigest()
    out = samples.capture(said, keep=sha256 if said else None)
    message = FinalMessage(status=MessageStatus.COMPLETE, size_bytes=len(said), sha256=sha256)
    more: dict[str, Any] = {"limit": "time"} if status == "error" else {}
    if not said:
        message = FinalMessage(status=MessageStatus.MISSING, reason="the candidate printed nothing")
        more = {"reason": "final message: the candidate printed nothing"}
    return samples.seen(
        **{
            "agent": samples.box(samples.command(stdout=out)),
            "grader": None,
            "message": message,
            "checks": (samples.checked("ready", status, **more),),
            **changes,
        }
    )


def put_messages(blobs: BlobStore) -> None:
    """What candidates say here."""
    for said in (SAID, NOT_YET):
        blobs.put(said)


def seal(
    directory: Path, planned: Plan, observed: list[Observations | None], settings: Settings
) -> str | None:
    """Write a run; None is a trial without a receipt. Returns the checkpoint."""
    key = load_signing_key(settings)
    seen = {place.trial_id: one for place, one in zip(planned.trials, observed, strict=True) if one}
    checkpoint = samples.write_run(directory, key, planned, seen)
    put_messages(BlobStore(directory / "blobs"))
    return checkpoint


def sealed(directory: Path, planned: Plan, *observed: Observations | None) -> VerifiedRun:
    """The same, verified."""
    settings = load_settings()
    seal(directory, planned, list(observed), settings)
    return verify(directory, Trust.local(settings))
