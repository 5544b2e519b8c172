"""An extension in a trial: who it is and what the case needs, before the candidate runs; its judgement, after it.

The first trial of a task asks `describe` and `prepare`; the answers hold for all its trials, since nothing of a single
trial was in the questions.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from boxeval.agents.environment import grader_environment
from boxeval.agents.hosts import host_of
from boxeval.formats.fixtures import Fixture, fixture_of
from boxeval.graders.extension_checks import judged, unjudged
from boxeval.graders.extension_evidence import (
    CONTINUATION,
    HOST_CAPABILITIES,
    MESSAGE,
    PATCH,
    describe_params,
    evaluate_params,
    prepare_params,
)
from boxeval.graders.extension_exchange import ProtocolFault
from boxeval.graders.extension_hosts import host_streams
from boxeval.graders.extension_rules import ARTIFACT_BYTES, check_evaluation, check_prepared, negotiate
from boxeval.rules.endings import breach
from boxeval.sandbox.settings import MIB
from boxeval.spec.extension import (
    DescribeResult,
    EvaluateResult,
    JsonObject,
    PrepareResult,
)
from boxeval.spec.extension_use import ExchangeSeen, ExtensionSeen, Negotiated
from boxeval.spec.graded import MessageStatus
from boxeval.spec.outcome import FailureClass
from boxeval.spec.suite import Runner, RunnerKind
from boxeval.spec.trial import Observations, SetupFault
from boxeval.trial.extension_room import EVIDENCE, ChangedFault, ExtensionSource, Room
from boxeval.trial.fixtures import FixtureRef

if TYPE_CHECKING:
    from boxeval.trial.context import TrialContext

ARTIFACT_SHARE = 8
"""Of the slot's disk for graders no artifact takes more than this part, and none more than 8 MiB."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What an extension said before the candidate ran; with `fault` it is not asked again."""

    negotiated: Negotiated | None = None
    files: Fixture | None = None
    data: JsonObject = field(default_factory=dict)
    exchanges: tuple[ExchangeSeen, ...] = ()
    fault: str | None = None

    @property
    def is_lasting(self) -> bool:
        """Whether it says something of the extension: a fault of the engine is the fault of one trial."""
        return not any(one.box.error or breach(one.box) for one in self.exchanges)


class ExtensionStore:
    """The extensions of a run, by task and target. Threads may ask for the same one at once."""

    def __init__(self, sources: Mapping[tuple[str, str], ExtensionSource]) -> None:
        self._sources = sources
        self._lock = threading.Lock()
        self._locks: dict[tuple[str, str], threading.Lock] = {}
        self._opened: dict[tuple[str, str], Opening] = {}

    def open(self, context: TrialContext, fixture: FixtureRef) -> TrialExtension | None:
        """The extension of a trial whose fixture is staged; None if it has none."""
        task = context.task
        source = self._sources.get((task.task, task.target))
        if source is None:
            return None
        room = _room(context, source, fixture)
        key = (task.task, task.target)
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            opening = self._opened.get(key) or _open(room, context)
            if opening.is_lasting:
                self._opened[key] = opening
        return TrialExtension(context, room, opening)


def _room(context: TrialContext, source: ExtensionSource, fixture: FixtureRef) -> Room:
    image = context.image(context.task.grader_image)
    room = Room(
        source=source,
        slot=context.slot,
        trial_id=context.trial_id,
        fixture=fixture.key,
        image=image,
        env=grader_environment(context.task, image.path_env, ambient=context.ambient),
        lifetime_s=context.lifetime_s,
        reaper=context.reaper,
        blobs=context.blobs,
        cancel=context.cancel,
    )
    room.furnish()
    return room


def host_capabilities(runner: Runner) -> tuple[str, ...]:
    """Of the agent that takes a turn."""
    host = host_of(runner)
    continues = host.continues if host else runner.kind is RunnerKind.SCRIPTED
    return (*HOST_CAPABILITIES, CONTINUATION) if continues else HOST_CAPABILITIES


def _open(room: Room, context: TrialContext) -> Opening:
    use, of_host = room.source.use, host_capabilities(context.task.runner)
    negotiated = None
    try:
        asked = describe_params(use.protocol, of_host)
        negotiated = negotiate(use.protocol, asked, room.ask(DescribeResult, asked), use)
        prepared = room.ask(PrepareResult, prepare_params(context.task, use, of_host))
        files = check_prepared(prepared)
    except ProtocolFault as fault:
        return Opening(negotiated, exchanges=tuple(room.seen), fault=str(fault))
    content = [(path.encode(), mode, data) for path, (mode, data) in files.items()]
    planted = fixture_of("prepare", content, ARTIFACT_BYTES) if content else None
    return Opening(negotiated, planted, prepared.extension_data, tuple(room.seen))


@dataclass(frozen=True, slots=True)
class TrialExtension:
    """An extension of which one trial has the opening."""

    context: TrialContext
    room: Room
    opening: Opening

    def faulty(self) -> Observations | None:
        """What is known of a trial that cannot begin, since its extension cannot be asked; None if it can."""
        fault = self.opening.fault
        if fault is None:
            return None
        broken = any(breach(one.box) for one in self.opening.exchanges)
        kind = FailureClass.ISOLATION_FAILED if broken else FailureClass.GRADER_ERROR
        return Observations(
            fault=SetupFault(failure_class=kind, detail=f"extension: {fault}"[:300]),
            extension=self._seen(self.opening.exchanges),
            cancelled=self.context.cancel.is_set,
        )

    def prepared(self, fixture: FixtureRef) -> FixtureRef:
        """The fixture with the files that the extension wants in it."""
        if self.opening.files is None:
            return fixture
        return self.context.fixtures.with_files(fixture, self.opening.files, self.context.slot)

    def evaluate(self, seen: Observations, below: Sequence[str]) -> ExtensionSeen:
        """Ask for a judgement on a trial that the built-in graders have seen; `below` are the graded layers."""
        opening, room = self.opening, self.room
        assert opening.negotiated is not None
        first = len(room.seen)
        try:
            message, artifacts = self._evidence(seen)
            asked = evaluate_params(
                self.context.task, room.source.use, seen, opening.data, message, artifacts
            )
            told = room.ask(EvaluateResult, asked, tuple(below), evidence=bool(artifacts))
            check_evaluation(asked, told, opening.negotiated, room.source.use.due)
        except ProtocolFault as fault:
            exchanges = tuple(room.seen[first:])
            bare = self._seen((*opening.exchanges, *exchanges))
            bare = bare.model_copy(update={"changed": isinstance(fault, ChangedFault)})
            return unjudged(bare, str(fault), exchanges[-1].box if exchanges else None)
        bare = self._seen((*opening.exchanges, *room.seen[first:]))
        return judged(bare, room.source.use, opening.negotiated, asked, told)

    def _seen(self, exchanges: tuple[ExchangeSeen, ...]) -> ExtensionSeen:
        return ExtensionSeen(
            sources=self.room.source.files.digest, negotiated=self.opening.negotiated, exchanges=exchanges
        )

    def _evidence(self, seen: Observations) -> tuple[bytes | None, dict[str, tuple[str, str]]]:
        """The final message, and what the box will find at `/evidence`: path and digest by id."""
        blobs = self.context.blobs
        most = min(ARTIFACT_BYTES, self.context.slot.policy.limits.workspace_mib * MIB // ARTIFACT_SHARE)
        wanted: dict[str, tuple[str, str]] = {}
        message = None
        if seen.message and seen.message.status is MessageStatus.COMPLETE and seen.message.sha256:
            message = blobs.get(seen.message.sha256)
            if len(message) <= most:
                wanted[f"{MESSAGE}.text"] = ("message", seen.message.sha256)
        patch = seen.collected.patch if seen.collected else None
        if patch and patch.sha256 and patch.complete and patch.size_bytes <= most:
            wanted[PATCH] = ("patch", patch.sha256)
        for number, (name, sha256, size_bytes) in enumerate(host_streams(seen.agent_record), start=1):
            if size_bytes <= most:
                wanted[name] = (f"stream-{number}", sha256)
        if wanted:
            files = ((name.encode(), 0o644, blobs.get(sha256)) for name, sha256 in wanted.values())
            self.room.plant("evidence", fixture_of("evidence", files, len(wanted) * most))
        return message, {id: (f"{EVIDENCE}/{name}", sha256) for id, (name, sha256) in wanted.items()}
