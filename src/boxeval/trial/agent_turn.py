"""One turn of an agent of others: the probe before it, its command, and what its own stream says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from boxeval.agents import preflight, preparation
from boxeval.agents.environment import candidate_environment, home_files
from boxeval.agents.external_command import working_directory
from boxeval.agents.host import NO_MODEL, Host, Request
from boxeval.agents.interface import ModelAccess
from boxeval.agents.stream import STREAM_BYTES, Output, Reading, reading_of
from boxeval.formats.runtime_config import RUNTIME_DIRECTORY
from boxeval.rules.skill_token import occurrences
from boxeval.sandbox.box import Box
from boxeval.sandbox.job import Job
from boxeval.spec.agent_record import (
    Completeness,
    HostArtifact,
    Invocation,
    Preflight,
    Preparation,
    TurnEnd,
    TurnRecord,
)
from boxeval.spec.box import BoxResult, CommandResult
from boxeval.spec.graded import FinalMessage, MessageStatus
from boxeval.spec.host_options import HostOptions
from boxeval.trial.context import TrialContext
from boxeval.trial.stage import Turn
from boxeval.trial.trees import files_tree

DID_NOT_RUN = FinalMessage(status=MessageStatus.MISSING, reason="the agent did not run")


@dataclass(frozen=True, slots=True)
class Said:
    """What an agent told of one turn."""

    record: TurnRecord
    message: FinalMessage


class AgentTurn:
    """A turn to be taken. `before` is the agent's last one in the trial; without it the request is a fresh one.

    `proxy` is the environment by which the box reaches what its policy lets it reach.
    """

    def __init__(
        self,
        context: TrialContext,
        turn: Turn,
        host: Host,
        access: ModelAccess | None,
        before: TurnRecord | None,
        proxy: Mapping[str, str],
    ) -> None:
        self._context, self._turn, self._host = context, turn, host
        self._is_fresh = before is None
        self._session = before.session if before and host.continues else None
        runner = turn.task.runner
        self._options = runner.host or HostOptions()
        request = Request(runner.prompt or "", access or NO_MODEL, self._options, self._session)
        command = host.command(request)
        image_path = context.image(turn.task.image).path_env
        given = candidate_environment(turn.task, image_path, access, ambient=context.ambient)
        env = {**proxy, **command.env, **given}
        self._files = {**host.files(self._options), **home_files(turn.task)}
        timeout_ms = turn.task.agent_timeout_ms
        cwd = working_directory(runner)
        self.job = Job(command.argv, env, cwd, command.stdin, timeout_ms, STREAM_BYTES)
        self._preflight: Preflight | None = None
        self._preparation: Preparation | None = None

    def prepare(self) -> None:
        """Put what the task prepared into the empty home, before its first box starts."""
        if self._is_fresh and self._files:
            slot = self._context.slot
            slot.keeper.fill_home(slot.policy, files_tree(self._files))

    def probe(self, box: Box) -> bool:
        """Look at the box before a fresh request; whether the agent may begin. Later turns have the same state."""
        if not self._is_fresh:
            return True
        env = self.job.env
        end = box.run(preflight.probe(self._host.version, env), last=False, aside=True)
        mounts = [mount.target for mount in self._context.slot.policy.mounts]
        mounts += (*self._context.image(self._turn.task.image).volumes, RUNTIME_DIRECTORY)
        found = preflight.read(end.stdout.kept, env, mounts, self._files, end.wall_ms)
        if end.exit_code != 0:
            how = f"not done within {preflight.PROBE_S} s" if end.timed_out else "it did not run to its end"
            found = found.model_copy(update={"broken": how})
        self._preflight = found
        return not (found.breaches or found.broken) and self._is_ready(box)

    def _is_ready(self, box: Box) -> bool:
        """Make ready what the task wants beside the home's files, now that the box is known to be as it should."""
        host, options = self._host, self._options
        job = preparation.job(options, host.plugins, host.configuration, self.job)
        if job is None:
            return True
        end = box.run(job, last=False, aside=True)
        self._preparation = preparation.read(end.stdout.kept, options)
        return self._preparation.fault is None

    def said(self, box: BoxResult) -> Said:
        """Read the turn's stream, once its box has settled."""
        if not box.commands:
            return Said(self._record(Reading(TurnEnd.INCOMPLETE, DID_NOT_RUN.reason), ()), DID_NOT_RUN)
        command = box.commands[-1]
        out = command.stdout
        data = self._context.blobs.get(out.kept) if out.kept else b""
        output = Output(data, out.size_bytes, command.exit_code)
        reading = reading_of(self._host.reader(self._options), output)
        return Said(self._record(reading, (self._stream(command, reading),)), self._message(reading))

    def _record(self, reading: Reading, artifacts: tuple[HostArtifact, ...]) -> TurnRecord:
        return TurnRecord(
            turn=self._turn.step.id if self._turn.step else self._turn.name,
            end=reading.end,
            reason=reading.reason,
            session=reading.session,
            continues=self._session is not None,
            usage=reading.usage,
            usage_reason=reading.usage_reason,
            calls=reading.calls,
            calls_truncated=reading.calls_truncated,
            context=reading.context,
            artifacts=artifacts,
            preflight=self._preflight,
            preparation=self._preparation,
            invocation=self._invocation(reading),
        )

    def _invocation(self, reading: Reading) -> Invocation | None:
        token, prompt = self._options.invoke, self._turn.task.runner.prompt or ""
        if token is None or not occurrences(token, prompt):
            return None
        if reading.end is TurnEnd.COMPLETED:
            return Invocation(skill=token, status=Completeness.COMPLETE)
        return Invocation(skill=token, status=Completeness.PARTIAL, reason="the turn was not completed")

    def _stream(self, command: CommandResult, reading: Reading) -> HostArtifact:
        """The stream itself (G42). One that was cut, or that its reader refuses, is no complete evidence."""
        out = command.stdout
        whole = not out.truncated and reading.end is not TurnEnd.ERROR
        return HostArtifact(
            id=f"{self._host.id}.events",
            status=Completeness.COMPLETE if whole else Completeness.PARTIAL,
            reason=None if whole else reading.reason,
            sha256=out.kept,
            size_bytes=out.size_bytes,
        )

    def _message(self, reading: Reading) -> FinalMessage:
        if reading.end is not TurnEnd.COMPLETED:
            return FinalMessage(status=MessageStatus.INCOMPLETE, reason=reading.reason)
        if reading.message is None:
            return FinalMessage(status=MessageStatus.MISSING, reason=reading.message_reason)
        data = reading.message.encode()
        return FinalMessage(
            status=MessageStatus.COMPLETE, size_bytes=len(data), sha256=self._context.blobs.put(data)
        )
