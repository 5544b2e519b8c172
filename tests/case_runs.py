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
SAID = b"ready\n"


def plan(trials: int = 1, checks: tuple[Any, ...] = (CHECK,), **case: Any) -> Plan:
    """A plan of one case, identity included."""
    run = CASE.model_copy(update=case)
    task = samples.task("say-ready", "reference", verify={"checks": checks}, dry=run.dry)
    images = {
        name: PlannedImage(name=name, image_id="sha256:1") for name in ("boxeval/base", "boxeval/grader")
    }
    return identified(samples.plan(task, repeats=trials, case=run, images=images))


def answered(status: str = "passed", **changes: Any) -> Observations:
    """A trial whose candidate said `ready`, and whose check came to `status`."""
    sha256 = hashlib.sha256(SAID).hexdigest()
    out = samples.capture(SAID, keep=sha256)
    message = FinalMessage(status=MessageStatus.COMPLETE, size_bytes=len(SAID), sha256=sha256)
    return samples.seen(
        **{
            "agent": samples.box(samples.command(stdout=out)),
            "grader": None,
            "message": message,
            "checks": (samples.checked("ready", status),),
            **changes,
        }
    )


def seal(
    directory: Path, planned: Plan, observed: list[Observations | None], settings: Settings
) -> str | None:
    """Write a run; None is a trial without a receipt. Returns the checkpoint."""
    key = load_signing_key(settings)
    seen = {place.trial_id: one for place, one in zip(planned.trials, observed, strict=True) if one}
    checkpoint = samples.write_run(directory, key, planned, seen)
    BlobStore(directory / "blobs").put(SAID)
    return checkpoint


def sealed(directory: Path, planned: Plan, *observed: Observations | None) -> VerifiedRun:
    """The same, verified."""
    settings = load_settings()
    seal(directory, planned, list(observed), settings)
    return verify(directory, Trust.local(settings))
