"""What an author runs: one extension through discovery and all methods, in the boxes that it will have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import JsonValue

from boxeval.graders.extension_checks import checks_of
from boxeval.graders.extension_evidence import CHANGED, HOST_CAPABILITIES, MESSAGE, name_in
from boxeval.graders.extension_exchange import ProtocolFault
from boxeval.graders.extension_rules import check_evaluation, check_prepared
from boxeval.run.extensions import SAMPLE, open_extension, resolve
from boxeval.spec.extension import (
    EvaluateParams,
    EvaluateResult,
    Execution,
    ExtensionCase,
    Host,
    JsonObject,
    Method,
    Observation,
    PrepareParams,
    PrepareResult,
)
from boxeval.spec.extension_use import ExchangeSeen, ExtensionUse, Negotiated
from boxeval.trial.extension_room import Room

_SAID = "The sample is done.\n"


@dataclass(frozen=True, slots=True)
class Finding:
    """One method: what it gave, or the fault. `diagnostics` is the head and tail of its standard error."""

    method: str
    ok: bool
    detail: str
    wall_ms: int | None = None
    answer_bytes: int | None = None
    diagnostics: str = ""


def check_extension(room: Room) -> tuple[Finding, ...]:
    """Ask everything once. After a fault the methods that need its answer are not asked."""
    return tuple(_Check(room).all())


class _Check:
    def __init__(self, room: Room) -> None:
        self._room = room
        self._who: Negotiated | None = None
        self._case = _sample_case()

    def all(self) -> list[Finding]:
        found = [self._one(Method.DESCRIBE, self._describe)]
        if self._who is not None:
            rest = (
                (Method.RESOLVE, self._resolve),
                (Method.PREPARE, self._prepare),
                (Method.EVALUATE, self._evaluate),
            )
            found += [self._one(method, ask) for method, ask in rest]
        return found

    def _one(self, method: Method, ask: Callable[[], str]) -> Finding:
        before = len(self._room.seen)
        try:
            ok, detail = True, ask()
        except ProtocolFault as fault:
            ok, detail = False, str(fault).removeprefix(f"{method}: ")
        seen = self._room.seen[before:]
        if not seen or not seen[0].box.commands:
            return Finding(method, ok, detail)
        end = seen[0].box.commands[0]
        return Finding(method, ok, detail, end.wall_ms, end.stdout.size_bytes, self._said(seen[0]))

    def _said(self, exchange: ExchangeSeen) -> str:
        kept = exchange.box.commands[0].stderr.kept
        return self._room.blobs.get(kept).decode("utf-8", "backslashreplace") if kept else ""

    def _describe(self) -> str:
        self._who = who = open_extension(self._room)
        return (
            f"{who.id} {who.version}, {who.protocol}, capabilities: {', '.join(who.capabilities) or 'none'}"
        )

    def _resolve(self) -> str:
        cases = resolve(self._room)
        if cases:
            self._case = cases[0]
        return f"cases: {', '.join(case.id for case in cases[:8]) or 'none'}"

    def _prepare(self) -> str:
        dialect = self._room.source.use.protocol
        host = Host(
            id=name_in(dialect, "boxeval.host.external-command"),
            capabilities=tuple(name_in(dialect, name) for name in HOST_CAPABILITIES),
        )
        params = PrepareParams(
            case=self._case, host=host, condition="passive", configuration=self._room.source.use.configuration
        )
        prepared = self._room.ask(PrepareResult, params)
        files = check_prepared(prepared)
        self._case = self._case.model_copy(
            update={"extension_data": {**self._case.extension_data, **prepared.extension_data}}
        )
        return f"files: {', '.join(files) or 'none'}"

    def _evaluate(self) -> str:
        assert self._who is not None
        use = self._room.source.use
        asked = _sample_trial(self._case, use)
        told = self._room.ask(EvaluateResult, asked)
        check_evaluation(asked, told, self._who, use.due)
        checks = checks_of(use, self._who, asked, told)
        said = [f"{check.id} {check.status}" for check in checks]
        said += [f"{metric.id} {metric.value} {metric.unit}" for metric in told.metrics]
        if told.task_verdict_recommendation:
            said.append(f"recommends {told.task_verdict_recommendation}")
        return ", ".join(said)


def _sample_case() -> ExtensionCase:
    return ExtensionCase(
        id="sample",
        prompt="Write something.",
        fixture={"kind": "inline", "files": {}},
        checks=(),
        required_evidence=(),
        extension_data={},
    )


def _sample_trial(case: ExtensionCase, use: ExtensionUse) -> EvaluateParams:
    changes: list[JsonValue] = [
        {"path": entry.path.decode(), "change": "created", "kind": "file"} for entry in SAMPLE.entries()
    ]
    seen: list[tuple[str, str, JsonObject]] = [
        (MESSAGE, "candidate", {"text": _SAID}),
        (CHANGED, "boxeval", {"changes": changes, "count": len(changes)}),
    ]
    return EvaluateParams(
        case_id=case.id,
        execution=Execution(status="completed"),
        observations=tuple(
            Observation(id=name_in(use.protocol, name), source=source, completeness="complete", data=data)
            for name, source, data in seen
        ),
        builtin_checks=(),
        artifacts=(),
        extension_data=case.extension_data,
        selected_task_verdict_policy=use.verdict_policy,
        configuration=use.configuration,
    )
