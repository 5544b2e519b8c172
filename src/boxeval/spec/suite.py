"""Suite v2: what a user writes (contract S7-S19). The loader refuses keys that a later version brings."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from boxeval.spec.agent_options import AgentOptions
from boxeval.spec.base import SAFE, EnvName, Id, Record
from boxeval.spec.chaos import Fault
from boxeval.spec.checks import MAX_CHECKS, Check, EvidenceName
from boxeval.spec.extension_use import ExtensionUse
from boxeval.spec.host_options import AgentName, HostOptions
from boxeval.spec.models import Budget, Model, Script
from boxeval.spec.workspace import Command, InlineFile, RelativePath, Workspace

Timeout = Annotated[int, Field(ge=1, le=24 * 3600 * 1000, description="Milliseconds.")]
Whole = Annotated[int, Field(ge=-SAFE, le=SAFE)]


class Visibility(StrEnum):
    """Who may see a suite. `private` suites export sanitized summaries only."""

    LOCAL = "local"
    PRIVATE = "private"
    PUBLIC = "public"


class SuiteInfo(Record):
    """Names and describes a suite."""

    id: Id = Field(description="Name of the suite in run ids and reports.")
    title: str = Field(description="One line for people.")
    visibility: Visibility = Field(strict=False, description="Who may see it.")
    description: str | None = Field(None, description="What the suite is about.")
    provenance: dict[str, str] | str | None = Field(
        None, description="Where the tasks come from, in free words."
    )


class Target(Record):
    """One column of the matrix."""

    id: Id = Field(description="Name of the target in reports.")
    model: str | None = Field(None, description="A name of `models`; else `defaults.model`.")
    thinking: str | None = Field(None, description="Label of the thinking effort, kept in reports.")
    image: str | None = Field(None, description="Image of the candidate's box; a task's own comes first.")
    policy: str | None = Field(None, description="Name or file of a policy; a task's own comes first.")
    agent: AgentName | None = Field(None, description="Agent of tasks of kind `agent` that name none.")
    env: dict[EnvName, str] = Field(default_factory=dict, description="Environment of the candidate.")


class Matrix(Record):
    """Every task runs for every target, `repeats` times."""

    targets: Annotated[tuple[Target, ...], Field(min_length=1)] = Field(description="What is compared.")
    repeats: Annotated[int, Field(ge=1, le=10_000)] = Field(1, description="Trials of each task and target.")
    max_cost_usd: Annotated[float, Field(gt=0)] | None = Field(
        None,
        description="Once the known cost has reached it, the rest is `budget_exhausted` without running.",
    )
    budget: Budget = Field(Budget(), description="What all trials together may use of their models.")


class RunnerKind(StrEnum):
    """How the candidate is started."""

    EXTERNAL_COMMAND = "external-command"
    SCRIPTED = "scripted"
    AGENT = "agent"
    CLIO_RUN = "clio-run"
    CONTEXT_INDEX = "context-index"
    CONTEXT_INIT = "context-init"


class Runner(Record):
    """The candidate's turn: `command` (shell text, or a program with `args`), `commands`, or a prompt."""

    kind: RunnerKind = Field(strict=False, description="How the candidate is started.")
    agent: AgentName | None = Field(
        None, description="kind agent: which one (docs/agents.md); else the target's."
    )
    host: HostOptions | None = Field(None, description="kind agent: settings of the agent.")
    prompt: str | None = Field(None, description="kinds scripted, agent, clio-run: what the agent is asked.")
    command: Command | None = Field(
        None, description="kind external-command, or agent `command`: shell text, or a program for `args`."
    )
    commands: tuple[Command, ...] = Field(
        (), description="kind external-command: shell commands (`sh -e`), in order, until one fails."
    )
    args: tuple[Command, ...] | None = Field(None, description="Arguments of `command`; no shell reads them.")
    script: str | Script | None = Field(
        None, description="kinds scripted, agent: the model's turns, for this task alone."
    )
    permissions: Literal["full", "read-only"] | None = Field(
        None, description="kind scripted: what the agent may do."
    )
    options: AgentOptions | None = Field(None, description="kind scripted: settings of the reference agent.")
    env: dict[EnvName, str] = Field(default_factory=dict, description="Environment; beats the target's.")
    stdin: str | None = Field(None, description="kind external-command: standard input of the command.")
    cwd: RelativePath | None = Field(None, description="Relative to the workspace.")
    timeout_ms: Timeout | None = Field(
        None, description="Of the candidate's turn, if shorter than the task's."
    )


class Op(StrEnum):
    """Compares a metric with a value. Ordering needs numbers on both sides; eq and neq are strict in type."""

    LT = "lt"
    LTE = "lte"
    GT = "gt"
    GTE = "gte"
    EQ = "eq"
    NEQ = "neq"


class Assertion(Record):
    """`metric op value` must hold (in `verify.assertions`), or must not (in `thresholds.fail`)."""

    metric: str = Field(description="A name of the metrics page.")
    op: Op = Field(strict=False, description="The comparison.")
    value: bool | Whole | float | str = Field(description="What the metric is compared with.")


class Verify(Record):
    """How a trial is graded. Commands run in one grader box, in order, until one fails."""

    commands: tuple[Command, ...] = Field(
        (), description="Shell commands (`sh -e`), in order; exit code 0 of all is a pass."
    )
    image: str | None = Field(None, description="Image of the grader's box.")
    env: dict[EnvName, str] = Field(default_factory=dict, description="Environment of the grader.")
    files: dict[RelativePath, str | InlineFile] = Field(
        default_factory=dict, description="Put into the grader's workspace; the candidate never sees them."
    )
    assertions: tuple[Assertion, ...] = Field((), description="All must hold; an unmeasured metric fails.")
    forbid_paths: tuple[str, ...] = Field((), description="gitignore-style patterns that must not change.")
    measure: Command | None = Field(
        None, description="A shell command (`sh -e`); its exit code is data: task.exitCode and task.solved."
    )
    grade_incomplete: bool = Field(False, description="Grade what a failed or timed-out turn left.")
    checks: Annotated[tuple[Check, ...], Field(max_length=MAX_CHECKS)] = Field(
        (), description="Graders by name (docs/graders.md); none can influence another."
    )
    judge: str | None = Field(
        None,
        description="A name of `models` that judges; else `defaults.judge`. It never serves a candidate.",
    )
    extension: ExtensionUse | None = Field(
        None, description="An executable that adds checks of its own (docs/extensions.md)."
    )
    scoring: Literal["binary", "weighted"] = Field(
        "binary", description="`binary`: every check passes. `weighted`: their mean score is high enough."
    )
    threshold: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None, description="With weighted scoring: the mean that passes; 0.7 if nothing says otherwise."
    )
    evidence: Literal["kept", "digest-only"] = Field(
        "kept",
        description="Of what graders print: the first and last 32 KiB, or its digest and length alone.",
    )
    timeout_ms: Timeout | None = Field(None, description="For all commands together; else the task's.")


WritePath = Annotated[str, StringConstraints(min_length=1, max_length=4096)]
Writes = Annotated[tuple[WritePath, ...], Field(max_length=32)]


Faults = Annotated[tuple[Fault, ...], Field(max_length=16)]


class StepVerify(Record):
    """A check between two steps, in a grader box of its own over what the steps before have left."""

    commands: Annotated[tuple[Command, ...], Field(min_length=1)] = Field(
        description="Shell commands; the first that fails ends the sequence."
    )
    files: dict[RelativePath, str | InlineFile] = Field(
        default_factory=dict, description="Put into the grader's workspace of this check alone."
    )
    timeout_ms: Timeout | None = Field(None, description="For all commands together; else that of `verify`.")


class Step(Record):
    """One of several turns in a row: a prompt for the reference agent, or a shell command."""

    id: Id = Field(description="Unique in the task.")
    prompt: str | None = Field(None, description="What the agent is asked. It needs a model or a script.")
    command: Command | None = Field(None, description="Shell text.")
    writes: Writes | None = Field(None, description="What this step may change; else the task's `writes`.")
    timeout_ms: Timeout | None = Field(None, description="Of this step, if shorter than the task's.")
    verify: StepVerify | None = Field(None, description="Checked after this step, before the next.")
    faults: Faults = Field((), description="Faults to inject into this step, in order (docs/chaos.md).")


class Metrics(Record):
    """Metrics that the report shows for a task."""

    collect: tuple[str, ...] = Field((), description="Names of metrics.")


class Task(Record):
    """One task. `image`, `policy` and `timeoutMs` fall back to `defaults`."""

    id: Id = Field(description="Unique, also when case is ignored.")
    title: str | None = Field(None, description="One line for people.")
    tags: tuple[str, ...] = Field((), description="For `--tag`.")
    smoke: bool = Field(False, description="Chosen by `--smoke`.")
    exclusive: bool = Field(False, description="Runs alone, whatever `--jobs` says.")
    expect: Literal["passed", "failed"] | None = Field(None, description="The scored outcome that is right.")
    expect_class: str | None = Field(
        None, description="With `expect: failed`: the failure class that is right."
    )
    image: str | None = Field(None, description="Image of the candidate's box.")
    policy: str | None = Field(None, description="Name or file of a policy.")
    workspace: Workspace = Field(description="The files that the candidate finds.")
    runner: Runner = Field(
        Runner(kind=RunnerKind.EXTERNAL_COMMAND),
        description="The candidate's turn. Beside `steps`, what they share; it may be left out there.",
    )
    steps: Annotated[tuple[Step, ...], Field(max_length=16)] = Field(
        (), description="Turns in a row, instead of one; a step that fails is the last."
    )
    writes: Writes | None = Field(
        None,
        description="What a turn may change: `dir/` is a subtree, else one file; `[]` is nothing. "
        "Without it: the whole workspace.",
    )
    protect: tuple[str, ...] = Field(
        (),
        description="gitignore-style patterns: what they match is put back before anything is graded.",
    )
    faults: Faults = Field(
        (), description="Faults to inject into the turn, in order (docs/chaos.md). Steps have their own."
    )
    verify: Verify = Field(Verify(), description="How the turn is graded.")
    required_evidence: tuple[EvidenceName, ...] = Field(
        (), description="What must have been seen, or the trial is not assessed (docs/graders.md)."
    )
    metrics: Metrics = Field(Metrics(), description="What the report shows.")
    secrets: Annotated[tuple[EnvName, ...], Field(max_length=32)] = Field(
        (),
        description="Names of the operator's keys that the gateway may use for this task. No box ever sees one.",
    )
    trials: Annotated[int, Field(ge=1, le=10_000)] | None = Field(
        None, description="Instead of `matrix.repeats`."
    )
    k: Annotated[int, Field(ge=1, le=10_000)] | None = Field(
        None, description="The k of pass@k and its like in the report; else the number of trials."
    )
    timeout_ms: Timeout | None = Field(None, description="Milliseconds; 60000 if nothing says otherwise.")


class Defaults(Record):
    """Fallbacks for every task."""

    image: str | None = Field(None, description="Image of the candidate's box.")
    policy: str | None = Field(None, description="Name or file of a policy.")
    timeout_ms: Timeout | None = Field(None, description="Milliseconds of a task.")
    network: Literal["none"] | None = Field(None, description="Boxes have no network.")
    model: str | None = Field(None, description="A name of `models`.")
    judge: str | None = Field(None, description="A name of `models`, for checks that a model judges.")


class Thresholds(Record):
    """Each entry is a failure condition on the metrics of a scored trial (S16)."""

    fail: tuple[Assertion, ...] = Field((), description="The run fails if one of them is true.")


class Suite(Record):
    """A whole suite file, validated."""

    version: Literal[2] = Field(description="Version of the suite format.")
    suite: SuiteInfo = Field(description="Names the suite.")
    defaults: Defaults = Field(Defaults(), description="Fallbacks for every task.")
    matrix: Matrix = Field(description="What runs, and how often.")
    models: dict[Id, Model] = Field(default_factory=dict, description="Where answers come from, by name.")
    tasks: Annotated[tuple[Task, ...], Field(min_length=1)] = Field(description="The tasks.")
    thresholds: Thresholds = Field(Thresholds(), description="Conditions on the whole run.")
