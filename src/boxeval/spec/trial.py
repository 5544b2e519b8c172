"""What the controller saw of one trial. A failure is a value here, never an exception."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from boxeval.spec.agent_record import AgentRecord
from boxeval.spec.base import Natural, Record, Scalar, Sha256
from boxeval.spec.box import BoxResult
from boxeval.spec.egress import EgressTraffic
from boxeval.spec.extension_use import ExtensionSeen
from boxeval.spec.graded import CheckSeen, FinalMessage, GitHeadSeen
from boxeval.spec.journal import Journal
from boxeval.spec.judged import Judged
from boxeval.spec.outcome import FailureClass, Outcome


class EntryKind(StrEnum):
    """Kinds of tree entries. Special files are recorded, never made on the host."""

    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symlink"
    FIFO = "fifo"
    SOCKET = "socket"
    DEVICE = "device"


class ChangeKind(StrEnum):
    """How an entry differs from the fixture, decided by content."""

    CREATED = "created"
    MODIFIED = "modified"
    DELETED = "deleted"


class Change(Record):
    """One path that differs. `path` and `link` are UTF-8, other bytes as surrogate-free `\\xNN` escapes."""

    path: str
    change: ChangeKind = Field(strict=False)
    kind: EntryKind | None = Field(None, strict=False, description="After the turn; None if deleted.")
    mode: int | None = None
    size_bytes: Natural | None = None
    sha256: Sha256 | None = Field(None, description="Content of a regular file; a blob of the run.")
    link: str | None = None
    was: EntryKind | None = Field(None, strict=False, description="Before; None if created.")
    was_mode: int | None = None
    was_size_bytes: Natural | None = None
    was_sha256: Sha256 | None = Field(
        None, description="Content of the regular file that was there; no blob of the run."
    )
    was_link: str | None = None


class Patch(Record):
    """The changes of the work tree as one text that `git apply` takes over the fixture, made without Git.

    An empty patch is a blob of no bytes; `sha256` None means that there is no patch, and `reasons` says why.
    """

    sha256: Sha256 | None = Field(description="Blob of the patch.")
    size_bytes: Natural = 0
    complete: bool = Field(description="Whether every changed file and link of the work tree is in it.")
    reasons: tuple[str, ...] = Field((), description="What is not in it, in words.")


class Collected(Record):
    """The candidate's changes against what was there before. With `limit` or `error` set there is nothing to grade."""

    changes: tuple[Change, ...] = ()
    patch: Patch | None = Field(None, description="None with `limit` or `error`, and of a single step.")
    limit: str | None = Field(None, description="Which collect cap the changes broke: the candidate's doing.")
    error: str | None = Field(None, description="Why they could not be read back: not the candidate's doing.")


class PutBack(Record):
    """A change that may not stay, by path and kind: created, changed, deleted, mode, link or kind."""

    path: str
    kind: Literal["created", "changed", "deleted", "mode", "link", "kind"]


class Unrecoverable(Record):
    """A path that is not as it was before the turn, and why it could not be put back."""

    path: str
    reason: str


class BoundaryStatus(StrEnum):
    """What the write boundary of a turn came to."""

    CLEAN = "clean"
    ROLLED_BACK = "rolled-back"
    ROLLBACK_INCOMPLETE = "rollback-incomplete"


class BoundaryVerdict(Record):
    """What a turn was allowed to change, what it changed, and what became of the rest (S39)."""

    step: str = Field(description="The step's id; empty for a single turn.")
    allow: tuple[str, ...] | None = Field(description="None: the whole workspace.")
    baseline: Sha256 = Field(description="Over the fixture and the changes of the steps before.")
    changed: tuple[str, ...]
    violations: tuple[PutBack, ...]
    rolled_back: tuple[str, ...]
    unrecoverable: tuple[Unrecoverable, ...]
    status: BoundaryStatus = Field(strict=False)
    digest: Sha256 = Field(description="Over the canonical verdict without this field.")


class Enforcement(Record):
    """What the controller put back after a turn, and what it found there then."""

    boundary: BoundaryVerdict | None = Field(None, description="None for a single turn without `writes`.")
    restored: tuple[PutBack, ...] = Field((), description="Changes of protected paths, all put back.")
    kept: Collected | None = Field(
        None, description="Changes of the turn after it; None if nothing was to do."
    )
    faults: tuple[Unrecoverable, ...] = Field((), description="What the keeper could not do.")


class StepSeen(Record):
    """One step. `collected` is against everything below it: the fixture and the steps before."""

    id: str
    agent: BoxResult
    collected: Collected | None = None
    enforced: Enforcement | None = None
    verify: BoxResult | None = None


class StreamFacts(Record):
    """What the streams of a trial's model had in them that makes counting go wrong (S28)."""

    cumulative_snapshots: Natural = Field(description="Pieces of text that repeat all that came before.")
    usage_double_counted: bool = Field(description="Whether an answer told its usage more than once.")
    segment_usage_matches_messages: bool = Field(
        description="Whether the usage of all answers is that of all different messages."
    )


class ModelTraffic(Record):
    """What the gateway counted on the wire for this trial. None where no model was attached.

    With `unmeasured_requests` the tokens are a lower bound: an answer was cut before it told them.
    """

    requests: Natural
    background_requests: Natural = Field(
        0, description="Beside the candidate's own conversation; of a script free of charge."
    )
    unmeasured_requests: Natural = 0
    input_tokens: Natural
    output_tokens: Natural
    cache_read_tokens: Natural = Field(0, description="Of the input tokens.")
    cache_write_tokens: Natural = Field(0, description="Of the input tokens.")
    cost_usd: float | None = Field(None, description="None if the cost of any answer is not known.")
    model_ms: Natural = 0
    tool_calls: Natural = 0
    failed_tool_calls: Natural | None = Field(
        None, description="None if the protocol does not tell of every result."
    )
    stream: StreamFacts | None = Field(None, description="None without an answer.")
    error: str | None = Field(
        None, description="First fault of the model's side, e.g. a script that ran out."
    )
    failed_before_first_turn: bool = False
    refused: bool = Field(False, description="Whether the last answer declined.")
    silent_ms: Natural = Field(
        0,
        description="Longest wait for the model that ended without a word from it; no other answer came meanwhile.",
    )
    limit: str | None = Field(None, description="First limit of a budget that a request was refused for.")
    run_budget_spent: bool = Field(False, description="That limit is the run's, not the trial's own.")
    log: Sha256 | None = Field(None, description="Blob with every request and response.")


class SetupFault(Record):
    """Why a trial ended before its candidate ran."""

    failure_class: FailureClass = Field(strict=False)
    detail: str


class FixtureNotes(Record):
    """What a fixture that came from Git does not hold. Paths as in a change."""

    submodules: tuple[str, ...] = Field((), description="Left as empty directories.")
    lfs_pointers: tuple[str, ...] = Field((), description="Pointers; Git LFS has the content elsewhere.")


class Observations(Record):
    """All evidence of one trial. The outcome is a pure function of these and the planned task.

    `collected` is against the fixture: for a single turn what it left, before anything was put back. A task with
    steps has `steps` instead of `agent` and `enforced`, and `collected` is what they left together in the end.
    """

    fault: SetupFault | None = None
    fixture: Sha256 | None = None
    fixture_notes: FixtureNotes | None = None
    agent: BoxResult | None = None
    collected: Collected | None = None
    enforced: Enforcement | None = None
    steps: tuple[StepSeen, ...] = ()
    traffic: ModelTraffic | None = None
    egress: EgressTraffic | None = Field(None, description="None where the policy has no allowlist.")
    agent_record: AgentRecord | None = Field(None, description="What an agent of others said of itself.")
    journal: Journal | None = Field(None, description="None where the agent keeps no ledger.")
    message: FinalMessage | None = None
    measure: BoxResult | None = None
    grader: BoxResult | None = None
    git_head: GitHeadSeen | None = None
    judged: tuple[Judged, ...] = Field((), description="Every exchange with the judge.")
    judge_traffic: ModelTraffic | None = Field(
        None, description="Of the judge, which is never the candidate's."
    )
    checks: tuple[CheckSeen, ...] = Field((), description="One a declared check, in the suite's order.")
    extension: ExtensionSeen | None = None
    cancelled: bool = False

    @property
    def graded(self) -> tuple[CheckSeen, ...]:
        """The declared checks, then those of an extension."""
        return (*self.checks, *(self.extension.checks if self.extension else ()))


class Trial(Record):
    """One finished trial. Times: `started_at` is UTC in RFC 3339, `steps_ms` is by a monotonic clock."""

    trial_id: str
    task: str
    target: str
    repeat: int
    attempt: int = 1
    identity: Sha256
    started_at: str
    wall_ms: Natural
    steps_ms: dict[str, int]
    observations: Observations
    metrics: dict[str, Scalar]
    outcome: Outcome
