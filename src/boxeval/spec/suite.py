"""Suite v2: what a user writes (contract S7-S19). Keys that a later version brings are refused by the loader."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from boxeval.spec.base import Id, Natural, Positive, Record

Timeout = Annotated[int, Field(ge=1, le=24 * 3600 * 1000, description="Milliseconds.")]
Command = Annotated[str, StringConstraints(min_length=1, max_length=131_071)]
"""One argument of execve is at most 128 KiB on Linux, with its NUL."""
RelativePath = Annotated[str, StringConstraints(min_length=1, max_length=4096)]
EnvName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=256)]


class Visibility(StrEnum):
    """Who may see a suite. `private` suites export sanitized summaries only."""

    LOCAL = "local"
    PRIVATE = "private"
    PUBLIC = "public"


class SuiteInfo(Record):
    """Names and describes a suite."""

    id: Id
    title: str
    visibility: Visibility = Field(strict=False)
    description: str | None = None
    provenance: dict[str, str] | str | None = None


class InlineFile(Record):
    """A file written in the suite itself. `mode` is an octal string such as "0755"."""

    text: str
    mode: Annotated[str, StringConstraints(pattern=r"^0[0-7]{3}$")] = "0644"


class WorkspaceKind(StrEnum):
    """Where a fixture comes from. All kinds end as a read-only snapshot below an overlay."""

    INLINE = "inline"
    TEMP_COPY = "temp-copy"
    GIT = "git"
    LOCAL = "local"
    ARCHIVE = "archive"


class Workspace(Record):
    """The fixture of a task. Which fields a kind needs and takes is checked in `formats.suite_v2`."""

    kind: WorkspaceKind = Field(strict=False)
    files: dict[RelativePath, str | InlineFile] | None = Field(None, description="kind inline: path to content.")
    path: str | None = Field(None, description="Directory, archive or repository, relative to the suite file.")
    url: str | None = Field(None, description="kind git: repository to fetch from.")
    commit: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")] | None = None
    checkout: str | None = Field(None, description="kind git: branch or tag, instead of a commit.")
    excludes: tuple[str, ...] = Field((), description="gitignore-style patterns, left out of the snapshot.")
    setup: tuple[Command, ...] = Field((), description="Shell commands, run once in a box to complete the fixture.")
    size_limit: Positive = Field(256 * 1024 * 1024, description="Bytes; a larger fixture is refused.")


class Text(Record):
    """A scripted turn: the model says this and ends its turn."""

    text: str


class ToolCall(Record):
    """One tool call of a scripted turn."""

    tool: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    input: dict[str, bool | int | float | str | None | list[str]] = Field(default_factory=dict)


class ToolCalls(Record):
    """A scripted turn: the model asks for these tools, all in one batch."""

    calls: Annotated[tuple[ToolCall, ...], Field(min_length=1)]


class Usage(Record):
    """What every scripted turn reports as used."""

    input: Natural = 100
    output: Natural = 20
    cost_usd: Annotated[float, Field(ge=0, strict=False)] | None = None


class Script(Record):
    """A scripted model: turns are served one a request; running out is an error, never a hang (S47)."""

    turns: Annotated[tuple[Text | ToolCalls, ...], Field(min_length=1)]
    usage: Usage = Usage()


class Model(Record):
    """A named model: where its answers come from."""

    script: str | Script = Field(description="A script file relative to the suite, or the script itself.")


class Target(Record):
    """One column of the matrix."""

    id: Id
    model: str | None = None
    thinking: str | None = None
    image: str | None = None
    policy: str | None = None
    env: dict[EnvName, str] = Field(default_factory=dict)


class Matrix(Record):
    """Every task runs for every target, `repeats` times."""

    targets: Annotated[tuple[Target, ...], Field(min_length=1)]
    repeats: Annotated[int, Field(ge=1, le=10_000)] = 1
    max_cost_usd: Annotated[float, Field(gt=0, strict=False)] | None = None


class RunnerKind(StrEnum):
    """How the candidate is started."""

    EXTERNAL_COMMAND = "external-command"
    SCRIPTED = "scripted"


class Runner(Record):
    """The candidate's turn: `command` (shell text, or a program if `args` is given), `commands`, or a prompt."""

    kind: RunnerKind = Field(strict=False)
    prompt: str | None = None
    command: Command | None = None
    commands: tuple[Command, ...] = ()
    args: tuple[Command, ...] | None = None
    script: str | Script | None = Field(None, description="kind scripted: the model's turns, for this task alone.")
    permissions: Literal["full", "read-only"] | None = Field(None, description="kind scripted: what the agent may do.")
    env: dict[EnvName, str] = Field(default_factory=dict)
    stdin: str | None = None
    cwd: RelativePath | None = Field(None, description="Relative to the workspace.")
    timeout_ms: Timeout | None = None


class Op(StrEnum):
    """Comparison of a metric with a value. Ordering needs numbers on both sides; eq and neq are strict in type."""

    LT = "lt"
    LTE = "lte"
    GT = "gt"
    GTE = "gte"
    EQ = "eq"
    NEQ = "neq"


class Assertion(Record):
    """`metric op value` must hold (in `verify.assertions`), or must not (in `thresholds.fail`)."""

    metric: str
    op: Op = Field(strict=False)
    value: bool | int | float | str


class Verify(Record):
    """How a trial is graded. Commands run in one grader box, in order, until one fails."""

    commands: tuple[Command, ...] = ()
    image: str | None = None
    env: dict[EnvName, str] = Field(default_factory=dict)
    files: dict[RelativePath, str | InlineFile] = Field(
        default_factory=dict, description="Put into the grader's workspace; the candidate never sees them."
    )
    assertions: tuple[Assertion, ...] = ()
    forbid_paths: tuple[str, ...] = Field((), description="gitignore-style patterns that must not change.")
    measure: Command | None = Field(None, description="Its exit code is data: task.exitCode and task.solved.")
    grade_incomplete: bool = False
    timeout_ms: Timeout | None = Field(None, description="For all commands together; else the task's.")


class Metrics(Record):
    """Metrics that the report shows for a task."""

    collect: tuple[str, ...] = ()


class Task(Record):
    """One task. `image`, `policy` and `timeoutMs` fall back to `defaults`."""

    id: Id
    title: str | None = None
    tags: tuple[str, ...] = ()
    smoke: bool = False
    exclusive: bool = False
    expect: Literal["passed", "failed"] | None = None
    expect_class: str | None = None
    image: str | None = None
    policy: str | None = None
    workspace: Workspace
    runner: Runner
    verify: Verify = Verify()
    metrics: Metrics = Metrics()
    trials: Annotated[int, Field(ge=1, le=10_000)] | None = None
    timeout_ms: Timeout | None = None


class Defaults(Record):
    """Fallbacks for every task."""

    image: str | None = None
    policy: str | None = None
    timeout_ms: Timeout | None = None
    network: Literal["none"] | None = None
    model: str | None = None


class Thresholds(Record):
    """Each entry is a failure condition on the metrics of a scored trial (S16)."""

    fail: tuple[Assertion, ...] = ()


class Suite(Record):
    """A whole suite file, validated."""

    version: Literal[2]
    suite: SuiteInfo
    defaults: Defaults = Defaults()
    matrix: Matrix
    models: dict[Id, Model] = Field(default_factory=dict)
    tasks: Annotated[tuple[Task, ...], Field(min_length=1)]
    thresholds: Thresholds = Thresholds()
