"""Messages of the extension protocol, and boxes that ended as a test wants."""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from typing import Any

from boxeval.spec.box import BoxResult, Capture
from boxeval.spec.extension import (
    DescribeParams,
    DescribeResult,
    EvaluateParams,
    EvaluateResult,
    Execution,
    Observation,
)
from boxeval.spec.extension_use import Negotiated
from run_samples import box as settled
from run_samples import capture, command

WHO = Negotiated(
    id="example.words",
    version="1",
    protocol="boxeval.extension.v1",
    capabilities=(),
    graders=(),
    verdict_policies=(),
)
DESCRIBED: dict[str, Any] = {
    "extension": {"id": "example.words", "version": "1"},
    "protocols": ["boxeval.extension.v1"],
    "requiredCapabilities": [],
    "optionalCapabilities": [],
    "graders": [],
    "taskVerdictPolicies": [],
}
ASKED = DescribeParams(
    protocols=("boxeval.extension.v1",),
    engine_capabilities=("boxeval.workspace.files",),
    host_capabilities=("boxeval.host.exec",),
)


def described(**more: object) -> DescribeResult:
    return DescribeResult.model_validate_json(as_json({**DESCRIBED, **more}))


def evaluation(**more: object) -> EvaluateParams:
    """Two observations, of which the second is not complete."""
    seen = [
        Observation(
            id="boxeval.observation.final-message", source="candidate", completeness="complete", data={}
        ),
        Observation(id="boxeval.observation.usage", source="gateway", completeness="partial", data={}),
    ]
    given: dict[str, Any] = {
        "case_id": "one",
        "execution": Execution(status="completed"),
        "observations": tuple(seen),
        "builtin_checks": (),
        "artifacts": (),
        "extension_data": {},
        "configuration": {},
        **more,
    }
    return EvaluateParams(**given)


def evaluated(*checks: dict[str, Any], **more: object) -> EvaluateResult:
    return EvaluateResult.model_validate_json(as_json({"checks": list(checks), "metrics": [], **more}))


def check(status: str = "passed", *cites: str, name: str = "example.words.count") -> dict[str, Any]:
    return {"id": name, "status": status, "evidenceRefs": list(cites)}


def artifact(path: str, content: bytes = b"x", **more: object) -> dict[str, Any]:
    return {
        "id": (path or "empty")[-64:],
        "relativePath": path,
        "sha256": hashlib.sha256(content).hexdigest(),
        "contentBase64": b64encode(content).decode(),
        **more,
    }


def box(size_bytes: int, **ending: Any) -> BoxResult:
    """A settled box whose one command wrote so much to stdout, and exited 0 unless said otherwise."""
    return settled(command(**{"exit_code": 0, "stdout": written(size_bytes), **ending}))


def written(size_bytes: int) -> Capture:
    return capture().model_copy(update={"size_bytes": size_bytes})


def as_json(value: object) -> bytes:
    return json.dumps(value).encode()
