"""What an extension is told of a case and of a trial: requests made of plans and observations. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from boxeval.graders.extension_hosts import host_observations
from boxeval.rules.grading import commands
from boxeval.rules.turns import unfinished
from boxeval.spec.extension import (
    EXTENSION,
    ArtifactRef,
    BuiltinCheck,
    DeclaredCheck,
    DescribeParams,
    Dialect,
    EvaluateParams,
    Execution,
    ExtensionCase,
    Host,
    JsonObject,
    Observation,
    PrepareParams,
)
from boxeval.spec.extension_use import COMMANDS, ExtensionUse
from boxeval.spec.graded import CheckStatus, MessageStatus
from boxeval.spec.outcome import TaskState
from boxeval.spec.plan import PlannedTask
from boxeval.spec.trial import Change, Observations
from boxeval.spec.workspace import InlineFile, WorkspaceKind

ENGINE_CAPABILITIES = ("boxeval.workspace.files", "boxeval.artifacts.inline")
"""The candidate's files in the box of `evaluate`, and files of `prepare` in the candidate's workspace."""
HOST_CAPABILITIES = ("boxeval.host.exec",)
CONTINUATION = "boxeval.host.continuation"
"""Of an agent that goes on with a session: a case may have a second prompt."""
TEXT_BYTES = 1024 * 1024
"""A longer final message, also one that JSON makes longer, is an artifact only."""
CHANGES, CHANGES_BYTES = 4096, 2 * 1024 * 1024
MESSAGE, CHANGED, PATCH, TOKENS = "boxeval.message", "boxeval.changes", "boxeval.patch", "boxeval.tokens"
_OF_HOST = re.compile(r"boxeval\.host\.([a-z-]+\.[a-z0-9.-]+)")
"""What an agent left, by its host and kind."""
_SEVRO = {MESSAGE: "sevro.observation.final-message"}


def name_in(dialect: Dialect, name: str) -> str:
    """One of boxeval's own names as an extension of that dialect knows it."""
    if dialect == "boxeval":
        return name
    if found := _OF_HOST.fullmatch(name):
        return f"{dialect}.{found[1]}"
    return _SEVRO.get(name, f"{dialect}.{name.removeprefix('boxeval.')}")


def describe_params(dialect: Dialect, of_host: Sequence[str] = HOST_CAPABILITIES) -> DescribeParams:
    """What boxeval offers, with what the candidate's agent can do."""
    return DescribeParams(
        protocols=(f"{dialect}.{EXTENSION}",),
        engine_capabilities=tuple(name_in(dialect, name) for name in ENGINE_CAPABILITIES),
        host_capabilities=tuple(name_in(dialect, name) for name in of_host),
    )


def prepare_params(
    task: PlannedTask, use: ExtensionUse, of_host: Sequence[str] = HOST_CAPABILITIES
) -> PrepareParams:
    """A planned task as a case."""
    dialect = use.protocol
    checks = (
        DeclaredCheck(
            id=check.id,
            grader=name_in(dialect, check.grader),
            configuration=check.configuration.model_dump(mode="json", by_alias=True),
        )
        for check in task.verify.checks
    )
    first, second = _prompts(task)
    case = ExtensionCase(
        id=task.task,
        prompt=first,
        follow_up_prompt=second,
        fixture=_fixture(task),
        checks=(*checks, *use.checks),
        required_evidence=tuple(name_in(dialect, name) for name in task.required_evidence),
        extension_data=use.data,
    )
    agent = getattr(task.runner, "agent", None) or task.runner.kind
    host = Host(
        id=name_in(dialect, f"boxeval.host.{agent}"),
        capabilities=tuple(name_in(dialect, name) for name in of_host),
    )
    return PrepareParams(case=case, host=host, condition="passive", configuration=use.configuration)


def _prompts(task: PlannedTask) -> tuple[str, str | None]:
    """What the candidate is asked, or told to run; of two prompts in a row the second by itself."""
    asked = [step.runner.prompt for step in task.steps]
    if len(asked) == 2 and asked[0] and asked[1]:
        return asked[0], asked[1]
    runners = [step.runner for step in task.steps] or [task.runner]
    said = [text for r in runners for text in (r.prompt, r.command, *r.commands) if text and text.strip()]
    return "\n".join(said) or task.title or task.task, None


def _fixture(task: PlannedTask) -> JsonObject:
    """The workspace as a case has it; of one that is read from the host there is only its kind."""
    workspace = task.workspace
    files = workspace.files or {}
    texts = {path: file.text if isinstance(file, InlineFile) else file for path, file in files.items()}
    if workspace.kind is WorkspaceKind.INLINE:
        return {"kind": "inline", "files": {**texts}}
    told: JsonObject = {"kind": str(workspace.kind)}
    if workspace.kind is WorkspaceKind.GENERATED:
        told["commits"] = [one.model_dump(mode="json", exclude_unset=True) for one in workspace.commits or ()]
    return told | ({"files": {**texts}} if files else {})


def evaluate_params(
    task: PlannedTask,
    use: ExtensionUse,
    seen: Observations,
    data: JsonObject,
    message: bytes | None,
    artifacts: Mapping[str, tuple[str, str]],
) -> EvaluateParams:
    """A trial to judge. `message` are the bytes of a complete final message; `artifacts`: path and digest by id."""
    dialect = use.protocol
    return EvaluateParams(
        case_id=task.task,
        execution=Execution(status="completed" if _completed(task, seen) else "failed"),
        observations=tuple(
            one.model_copy(update={"id": name_in(dialect, one.id)}) for one in _observations(seen, message)
        ),
        builtin_checks=tuple(_checks(task, seen)),
        artifacts=tuple(
            ArtifactRef(id=name_in(dialect, name), path=f"file://{path}", sha256=sha256)
            for name, (path, sha256) in artifacts.items()
        ),
        extension_data={**use.data, **data},
        selected_task_verdict_policy=use.verdict_policy,
        configuration=use.configuration,
    )


def _completed(task: PlannedTask, seen: Observations) -> bool:
    return unfinished(task, seen) is None


def _observations(seen: Observations, message: bytes | None) -> Iterator[Observation]:
    yield _message(seen, message)
    yield _changes(seen)
    yield _tokens(seen)
    yield from host_observations(seen.agent_record)


def _message(seen: Observations, content: bytes | None) -> Observation:
    status = seen.message.status if seen.message else MessageStatus.MISSING
    data: JsonObject = {}
    text = None
    if content is not None and len(content) <= TEXT_BYTES:
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            data = {"reason": "the message is not UTF-8; its bytes are an artifact"}
        if text is not None and len(json.dumps(text, ensure_ascii=False)) > TEXT_BYTES:
            text, data = None, {"reason": f"the message has more than {TEXT_BYTES} characters as JSON"}
    elif content is not None:
        data = {"reason": f"the message has more than {TEXT_BYTES} bytes; they are an artifact"}
    elif seen.message and seen.message.reason:
        data = {"reason": seen.message.reason}
    if text is not None:
        return Observation(id=MESSAGE, source="candidate", completeness="complete", data={"text": text})
    completeness = "unavailable" if status is MessageStatus.MISSING else "partial"
    return Observation.model_validate(
        {"id": MESSAGE, "source": "candidate", "completeness": completeness, "data": data}
    )


def _changes(seen: Observations) -> Observation:
    collected = seen.collected
    if collected is None or collected.limit or collected.error:
        return Observation(id=CHANGED, source="boxeval", completeness="unavailable", data={})
    told = list(_within(CHANGES_BYTES, collected.changes[:CHANGES]))
    whole = len(told) == len(collected.changes)
    return Observation.model_validate(
        {
            "id": CHANGED,
            "source": "boxeval",
            "completeness": "complete" if whole else "partial",
            "data": {"changes": told, "count": len(collected.changes)},
        }
    )


def _within(left: int, changes: Iterable[Change]) -> Iterator[dict[str, Any]]:
    """As many changes as have room: a request that is too large would be the candidate's choice."""
    for change in changes:
        left -= len(change.model_dump_json(exclude_none=True))
        if left < 0:
            return
        yield change.model_dump(mode="json", exclude_none=True)


def _tokens(seen: Observations) -> Observation:
    traffic = seen.traffic
    if traffic is None:
        return Observation(id=TOKENS, source="gateway", completeness="unavailable", data={})
    told: JsonObject = {
        "inputTokens": traffic.input_tokens,
        "outputTokens": traffic.output_tokens,
        "costUsd": traffic.cost_usd,
        "requests": traffic.requests,
    }
    return Observation(id=TOKENS, source="gateway", completeness="complete", data=told)


def _checks(task: PlannedTask, seen: Observations) -> Iterator[BuiltinCheck]:
    """Verdicts of built-in graders; an error is unavailable, since nothing can be concluded from it."""
    if task.verify.commands:
        outcome = commands(task, seen)
        status = "passed" if outcome is None else "unavailable"
        if outcome and outcome.task is TaskState.FAILED:
            status = "failed"
        yield BuiltinCheck.model_validate({"id": COMMANDS, "status": status, "evidence_refs": ()})
    for check in seen.checks:
        decided = check.status in (CheckStatus.PASSED, CheckStatus.FAILED)
        yield BuiltinCheck.model_validate(
            {
                "id": check.id,
                "status": check.status.value if decided else "unavailable",
                "detail": check.reason[:4096] if check.reason else None,
                "evidence_refs": tuple(part.name[-128:] for part in check.evidence),
            }
        )
