"""What an extension is told is bounded, so that no candidate can make the request one that cannot be sent."""

from __future__ import annotations

import pytest

import run_samples as samples
from boxeval.graders.extension_evidence import evaluate_params
from boxeval.graders.extension_exchange import encode, make_request
from boxeval.spec.extension import EvaluateParams, Method
from boxeval.spec.extension_use import ExtensionUse
from boxeval.spec.graded import EvidencePart, FinalMessage, MessageStatus
from boxeval.spec.trial import Collected, Observations

USE = ExtensionUse(command=("x",))
TASK = samples.task()


def told(seen: Observations, message: bytes | None = None) -> EvaluateParams:
    params = evaluate_params(TASK, USE, seen, {}, message, {})
    encode(make_request("boxeval", Method.EVALUATE, params))
    return params


@pytest.mark.contract("G64")
def test_long_names_and_a_message_of_control_characters_are_told_in_part() -> None:
    changes = tuple(samples.change("é" * 1000 + f"/{n:04}") for n in range(4096))
    message = b"\x01" * (1024 * 1024)
    complete = FinalMessage(status=MessageStatus.COMPLETE, size_bytes=len(message), sha256=samples.EMPTY)
    params = told(samples.seen(collected=Collected(changes=changes), message=complete), message)
    said, changed, _ = params.observations
    assert (said.completeness, changed.completeness) == ("partial", "partial")
    assert changed.data["count"] == 4096
    assert 0 < len(changed.data["changes"]) < 4096  # type: ignore[arg-type]


def test_evidence_with_a_long_name_can_be_told() -> None:
    part = EvidencePart(name="docs/" + "n" * 200 + ".md", sha256=samples.EMPTY)
    seen = samples.seen(checks=(samples.checked(evidence=(part,)),))
    (*_, reference) = told(seen).builtin_checks
    assert reference.evidence_refs == (part.name[-128:],)
