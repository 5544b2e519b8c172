"""What an extension may say, beyond the form of its messages: capabilities, ids, evidence, files. Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator

from boxeval.formats.paths import collisions, file_fault, normal
from boxeval.graders.extension_exchange import ProtocolFault
from boxeval.spec.extension import (
    EXTENSION,
    DescribeParams,
    DescribeResult,
    Dialect,
    DomainOutcome,
    EvaluateParams,
    EvaluateResult,
    ExtensionCase,
    ExtensionCheck,
    PreparedArtifact,
    PrepareResult,
    ResolveResult,
)
from boxeval.spec.extension_use import ExtensionUse, Negotiated

ARTIFACT_BYTES = 8 * 1024 * 1024
"""Of all files that one `prepare` gives: they come in one message anyway."""


def negotiate(dialect: Dialect, asked: DescribeParams, told: DescribeResult, use: ExtensionUse) -> Negotiated:
    """Who the extension is, and the capabilities that both sides have. Raises `ProtocolFault`."""
    protocol = f"{dialect}.{EXTENSION}"
    if protocol not in told.protocols:
        raise ProtocolFault(f"describe: it does not speak {protocol}, but {', '.join(told.protocols)}"[:400])
    have = {*asked.engine_capabilities, *asked.host_capabilities}
    if missing := [name for name in told.required_capabilities if name not in have]:
        raise ProtocolFault(f"describe: it requires {missing[0]}, which is not to be had here")
    if lacking := [check.grader for check in use.checks if check.grader not in told.graders]:
        offered = ", ".join(told.graders) or "none"
        raise ProtocolFault(f"describe: it has no grader {lacking[0]} (it has: {offered})"[:400])
    policy = use.verdict_policy
    if policy is not None and policy not in told.task_verdict_policies:
        offered = ", ".join(told.task_verdict_policies) or "none"
        raise ProtocolFault(f"describe: it has no verdict policy {policy} (it has: {offered})"[:400])
    return Negotiated(
        id=told.extension.id,
        version=told.extension.version,
        protocol=protocol,
        capabilities=tuple(
            dict.fromkeys(
                name for name in (*told.required_capabilities, *told.optional_capabilities) if name in have
            )
        ),
        graders=told.graders,
        verdict_policies=told.task_verdict_policies,
    )


def check_cases(resolved: ResolveResult, wanted: Iterable[str] | None) -> tuple[ExtensionCase, ...]:
    """The cases that were asked for. Raises `ProtocolFault` if ids repeat, or one that was asked for is not there."""
    ids = [case.id for case in resolved.cases]
    if twice := _repeated(ids):
        raise ProtocolFault(f"resolve: the case {twice!r} is there twice")
    if missing := [name for name in wanted or () if name not in ids]:
        raise ProtocolFault(f"resolve: there is no case {missing[0]!r}")
    return tuple(case for case in resolved.cases if wanted is None or case.id in set(wanted))


def check_prepared(prepared: PrepareResult) -> dict[str, tuple[int, bytes]]:
    """Mode and content of each file that the candidate's workspace gets, by its path. Raises `ProtocolFault`."""
    if prepared.requested_instrumentation:
        name = prepared.requested_instrumentation[0].id
        raise ProtocolFault(f"prepare: it requests the instrumentation {name}, which boxeval does not have")
    if twice := _repeated(artifact.id for artifact in prepared.artifacts):
        raise ProtocolFault(f"prepare: the artifact {twice!r} is there twice")
    files: dict[str, tuple[int, bytes]] = {}
    for artifact in prepared.artifacts:
        try:
            path, content = _file(artifact)
        except ValueError as error:
            raise ProtocolFault(f"prepare: artifact {artifact.id!r}: {error}") from None
        if path in files:
            raise ProtocolFault(f"prepare: artifact {artifact.id!r}: another one has the path {path!r}")
        files[path] = (0o755 if artifact.executable else 0o644, content)
    for path, said in collisions(files):
        raise ProtocolFault(f"prepare: {path!r} {said}")
    if sum(len(content) for _, content in files.values()) > ARTIFACT_BYTES:
        raise ProtocolFault(f"prepare: its artifacts have more than {ARTIFACT_BYTES} bytes")
    return files


def _file(artifact: PreparedArtifact) -> tuple[str, bytes]:
    path = artifact.relative_path
    if fault := file_fault(path):
        raise ValueError(fault)
    if any(not part.isprintable() or "\\" in part for part in path.split("/")):
        raise ValueError(f"{path!r} has a character that no such path may have")
    if any(part.lower() == ".git" for part in path.split("/")):
        raise ValueError(f"{path!r} lies in `.git`")
    try:
        content = base64.b64decode(artifact.content_base64, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("its content is not base64") from None
    if hashlib.sha256(content).hexdigest() != artifact.sha256:
        raise ValueError("its content has another SHA-256 than it says")
    return normal(path), content


def check_evaluation(
    asked: EvaluateParams, told: EvaluateResult, who: Negotiated, declared: Iterable[str] = ()
) -> None:
    """Raise `ProtocolFault` for a result that may not be taken as it is. `declared`: ids that the task gave."""
    results: tuple[ExtensionCheck | DomainOutcome, ...] = (*told.checks, *told.domain_outcomes)
    ids = [result.id for result in results] + [metric.id for metric in told.metrics]
    if twice := _repeated(ids):
        raise ProtocolFault(f"evaluate: the id {twice} is there twice")
    answerable = {check.id for check in told.checks} & set(declared)
    if foreign := [name for name in ids if not name.startswith(f"{who.id}.") and name not in answerable]:
        raise ProtocolFault(f"evaluate: the id {foreign[0]} does not begin with {who.id}.")
    policy = asked.selected_task_verdict_policy
    if policy is None and told.task_verdict_recommendation is not None:
        raise ProtocolFault("evaluate: it recommends a verdict, and no verdict policy was selected")
    if policy is not None and told.task_verdict_recommendation is None:
        raise ProtocolFault(
            f"evaluate: the verdict policy {policy} was selected, and it recommends no verdict"
        )
    complete = dict(_evidence(asked))
    for result in results:
        for name in result.evidence_refs:
            if name not in complete:
                raise ProtocolFault(f"evaluate: {result.id} cites {name!r}, which it was not given"[:400])
            if result.status == "passed" and not complete[name]:
                raise ProtocolFault(f"evaluate: {result.id} passed by {name!r}, which is not complete"[:400])
        if result.status == "passed" and not result.evidence_refs:
            raise ProtocolFault(f"evaluate: {result.id} passed without evidence")
    if told.task_verdict_recommendation == "passed" and not any(c.status == "passed" for c in told.checks):
        raise ProtocolFault("evaluate: it recommends a pass, and none of its checks passed")


def _evidence(asked: EvaluateParams) -> Iterator[tuple[str, bool]]:
    """Each id that a result may cite, and whether what it names is complete."""
    for observation in asked.observations:
        yield observation.id, observation.completeness == "complete"
    for check in asked.builtin_checks:
        yield check.id, check.status != "unavailable"
    for artifact in asked.artifacts:
        yield artifact.id, True


def _repeated(ids: Iterable[str]) -> str | None:
    return next((name for name, count in Counter(ids).items() if count > 1), None)
