"""What an agent's adapter read out of the agent's own words: claims, beside which stand what boxeval saw itself.

Everything here comes from a stream or a file that the candidate could have written. It is bounded, and nothing in
it can make a check pass by itself.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from boxeval.spec.base import SAFE, Natural, Record, Sha256

Word = Annotated[str, StringConstraints(max_length=256)]
"""A name that an agent gave: cut to this length, with what is not printable escaped."""

CALLS = 4096
"""Tool calls of one turn in a record."""


class Completeness(StrEnum):
    """How much of some evidence there is. Only `complete` can satisfy evidence that a task requires."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    UNAVAILABLE = "unavailable"


class TurnEnd(StrEnum):
    """How a turn ended by its own stream and exit code."""

    COMPLETED = "completed"
    FAILED = "failed"
    """The agent says that it failed, or it exited nonzero."""
    INCOMPLETE = "incomplete"
    """The stream stops before a turn was completed."""
    ERROR = "error"
    """The stream is malformed, ambiguous or oversized."""


class ClaimedUsage(Record):
    """Tokens as the agent counts them; never estimated, never merged with the gateway's count.

    `input` has the cached ones in it. None where the agent says nothing.
    """

    input: Natural
    output: Natural
    cache_read: Natural | None = None
    cache_write: Natural | None = None
    cost_usd: Annotated[float, Field(ge=0, le=SAFE)] | None = None


class CallEnd(StrEnum):
    """What became of a tool call, as the agent tells it. `unknown`: no result of it was told."""

    COMPLETED = "completed"
    FAILED = "failed"
    BLOCKED = "blocked"
    UNKNOWN = "unknown"


class ClaimedCall(Record):
    """One tool call that the agent tells of, without its arguments. `ordinal` is its place in the stream."""

    ordinal: Natural
    name: Word
    id: Word | None = None
    end: CallEnd = Field(strict=False)


class HostArtifact(Record):
    """One private piece of evidence, kept as a blob of the run: the stream itself, or what was read from the home."""

    id: str
    status: Completeness = Field(strict=False)
    reason: str | None = Field(None, description="Why it is not complete.")
    sha256: Sha256 | None = None
    size_bytes: Natural = 0


class SkillActivation(Record):
    """A prepared skill whose whole body came back from a tool call, by the hook's own log. `ordinal` is the event's."""

    skill: Word
    ordinal: Natural


class SkillActivations(Record):
    """What passive hooks in the private home saw (`boxeval.host.skill-activations`)."""

    status: Completeness = Field(strict=False)
    reason: str | None = None
    seen: tuple[SkillActivation, ...] = ()


class Preflight(Record):
    """What the probe found in the box before a fresh request (G56)."""

    version: Word | None = Field(None, description="What the agent says of itself.")
    breaches: tuple[str, ...] = Field((), description="Where the box is not as promised.")
    broken: str | None = Field(None, description="Why the probe or the agent's own `--version` did not work.")
    wall_ms: Natural = 0


class InstalledPlugin(Record):
    """A plugin whose installed files are those of the marketplace. `sha256` is over their paths and digests."""

    id: Word
    version: Word
    files: Natural
    sha256: Sha256


class Preparation(Record):
    """What was made ready in the box before a fresh request, beside the home's files."""

    plugins: tuple[InstalledPlugin, ...] = ()
    fault: str | None = Field(None, description="Why the task cannot begin.")


class Invocation(Record):
    """A skill that a prompt names, and that was there: its dispatch, not what became of it (G48)."""

    skill: str
    status: Completeness = Field(strict=False)
    reason: str | None = None


class ContextIndex(Record):
    """What an agent's context command says of the index that it made. None: not told, or not valid."""

    indexed_files: Natural | None = None
    coverage: Annotated[float, Field(ge=0, le=1)] | None = None
    structural_hash: Word | None = None
    digest_tokens: Natural | None = None


class TurnRecord(Record):
    """One turn of an agent. `turn` is the step's id, or `agent` for the single turn of a task without steps."""

    turn: str
    end: TurnEnd = Field(strict=False)
    reason: str | None = Field(None, description="Why the turn is not completed.")
    session: Word | None = None
    continues: bool = Field(False, description="Whether the agent was told to go on with the turn's before.")
    usage: ClaimedUsage | None = None
    usage_reason: str | None = Field(None, description="Why there is no usage.")
    calls: tuple[ClaimedCall, ...] = ()
    calls_truncated: bool = False
    artifacts: tuple[HostArtifact, ...] = ()
    context: ContextIndex | None = None
    preflight: Preflight | None = Field(
        None, description="None where the turn goes on in a state that was probed."
    )
    preparation: Preparation | None = Field(None, description="None where nothing was to be made ready.")
    invocation: Invocation | None = Field(None, description="None where the turn's prompt names no skill.")


class RetainedFile(Record):
    """A file of the candidate's private home, kept as a blob. `path` is relative, with `\\NN` escapes."""

    path: str
    size_bytes: Natural
    sha256: Sha256


class RetainedTree(Record):
    """A subtree of the candidate's private home as it was after its last turn."""

    id: str
    status: Completeness = Field(strict=False)
    reason: str | None = None
    files: tuple[RetainedFile, ...] = ()


class NativeCall(Record):
    """A direct control call in the agent's own session, by name and ordinal: it proves an attempt, no more."""

    ordinal: Natural
    name: Word
    namespace: Word | None = None


class ExecCall(Record):
    """A submission to the code mode. It is told apart from direct calls and accepts nothing."""

    ordinal: Natural
    id: Word | None = None


class ChildRollout(Record):
    """The session of an agent that this one spawned."""

    status: Literal["available", "unavailable", "ambiguous", "partial"]
    thread: Word | None = None
    returned: bool | None = Field(
        None, description="Whether one nonempty final message matches its completion event; None: not told."
    )


class NativeSession(Record):
    """What the agent's own session file tells beside its stream (Codex)."""

    status: Completeness = Field(strict=False)
    reason: str | None = None
    calls: tuple[NativeCall, ...] = ()
    exec_calls: tuple[ExecCall, ...] = ()
    children: tuple[ChildRollout, ...] = ()
    truncated: bool = Field(False, description="Calls or children past a cap were let go.")
    boundaries: tuple[Natural, ...] = Field(
        (),
        description="The last ordinal before each later turn: calls above it are of that turn or a later one.",
    )


class AgentRecord(Record):
    """All turns of a trial's agent, and what was kept of its home. `host` is an id such as `boxeval.host.codex`."""

    host: str
    turns: tuple[TurnRecord, ...] = ()
    native: NativeSession | None = None
    skills: SkillActivations | None = Field(None, description="None where no skill was prepared.")
    transcripts: RetainedTree | None = Field(None, description="The agent's own session files.")
    artifacts: tuple[RetainedTree, ...] = Field((), description="Declared subtrees, by their names.")
