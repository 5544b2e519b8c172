"""Makers of plans, observations, trials and sealed runs for tests that need no engine."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from boxeval.receipts.keys import SigningKey
from boxeval.receipts.ledger import Ledger
from boxeval.rules.boundary import baseline, judge
from boxeval.rules.message import printed_message
from boxeval.rules.metrics import measure
from boxeval.rules.verdict import decide
from boxeval.spec.box import BoxResult, Capture, CommandResult
from boxeval.spec.checks import Check
from boxeval.spec.graded import CheckSeen, CheckStatus, FinalMessage
from boxeval.spec.journal import AgentReceipt, Journal, LoopRun
from boxeval.spec.outcome import FailureClass
from boxeval.spec.plan import Plan, PlannedImage, PlannedStep, PlannedTask, PlannedTrial, Provenance, SuiteRef
from boxeval.spec.policy import Policy
from boxeval.spec.suite import Assertion, Op, Runner, RunnerKind, StepVerify, Verify
from boxeval.spec.trial import (
    Change,
    ChangeKind,
    Collected,
    Enforcement,
    EntryKind,
    ModelTraffic,
    Observations,
    Patch,
    SetupFault,
    StepSeen,
    Trial,
)
from boxeval.spec.workspace import Workspace, WorkspaceKind
from grader_fixtures import check

EMPTY = hashlib.sha256(b"").hexdigest()
NOON = "2025-01-01T12:00:00.000Z"
PROVENANCE = Provenance(
    boxeval="0.1.0",
    python="3.11.2",
    engine="docker",
    engine_version="20.10",
    runtime="runc",
    storage_driver="overlay2",
    cgroup_version="2",
    kernel="6.1",
    architecture="x86_64",
)


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def task(name: str = "fix", target: str = "base", **changes: Any) -> PlannedTask:
    """A task with one grader command, `true`; `verify` may be given as a dict of its fields."""
    verify = changes.pop("verify", {"commands": ("true",)})
    fields: dict[str, Any] = {
        "task": name,
        "target": target,
        "image": "boxeval/base",
        "grader_image": "boxeval/grader",
        "policy": "default",
        "workspace": Workspace(kind=WorkspaceKind.INLINE, files={"a.txt": "a\n"}),
        "fixture_recipe": sha("fixture"),
        "runner": Runner(kind=RunnerKind.EXTERNAL_COMMAND, command="true"),
        "verify": verify if isinstance(verify, Verify) else Verify(**_tuples(verify)),
        "agent_timeout_ms": 60_000,
        "grader_timeout_ms": 30_000,
        "identity": sha(f"identity of {name}[{target}]"),
    }
    return PlannedTask(**{**fields, **changes})


def _tuples(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}


def wants(metric: str, op: str, value: bool | int | float | str) -> Assertion:
    return Assertion(metric=metric, op=Op(op), value=value)


def capture(data: bytes = b"", keep: str | None = None) -> Capture:
    return Capture(size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest(), truncated=False, kept=keep)


def command(exit_code: int | None = 0, **changes: Any) -> CommandResult:
    fields: dict[str, Any] = {
        "exit_code": exit_code,
        "signal": None,
        "timed_out": False,
        "spawn_error": None,
        "wall_ms": 5,
        "stdout": capture(),
        "stderr": capture(),
    }
    return CommandResult(**{**fields, **changes})


def killed(signal: int) -> CommandResult:
    return command(None, signal=signal)


def timed_out() -> CommandResult:
    return command(None, signal=9, timed_out=True)


def unstarted(errno: str = "ENOENT") -> CommandResult:
    return command(None, spawn_error=errno)


def box(*commands: CommandResult, **changes: Any) -> BoxResult:
    """A settled box; one command that exited 0 unless others are given."""
    fields: dict[str, Any] = {"image_id": "sha256:1", "commands": commands or (command(),), "settled": True}
    return BoxResult(**{**fields, **changes})


def change(path: str, how: str = "created", kind: EntryKind | None = EntryKind.FILE, **more: Any) -> Change:
    return Change(path=path, change=ChangeKind(how), kind=kind, **more)


def patch(data: bytes = b"", **more: Any) -> Patch:
    return Patch(
        **{"sha256": hashlib.sha256(data).hexdigest(), "size_bytes": len(data), "complete": True, **more}
    )


def journal(**changes: Any) -> Journal:
    """What is read of a good ledger: a loop with one repair, and a compaction."""
    loop = LoopRun(
        session="main.1",
        max_attempts=3,
        attempts=2,
        repairs=1,
        repairs_sealed=1,
        solved=True,
        reason="resolved",
        unneeded=2,
    )
    fields: dict[str, Any] = {
        "sha256": EMPTY,
        "format_version": 1,
        "sessions": 3,
        "compactions": 1,
        "summaries": 1,
        "answered_from_before": True,
        "receipts": (
            receipt("main.1", reason="resolved"),
            receipt("worker.1", "main.1"),
            receipt("repair.1", "main.1"),
        ),
        "loops": (loop,),
    }
    return Journal(**{**fields, **changes})


def receipt(session: str, parent: str | None = None, **changes: Any) -> AgentReceipt:
    """A valid receipt of a session that ended well."""
    fields: dict[str, Any] = {
        "session": session,
        "parent": parent,
        "role": session.partition(".")[0],
        "reason": "completed",
        "exit_code": 0,
        "valid": True,
    }
    return AgentReceipt(**{**fields, **changes})


def traffic(**changes: Any) -> ModelTraffic:
    return ModelTraffic(**{"requests": 2, "input_tokens": 200, "output_tokens": 40, **changes})


def seen(**changes: Any) -> Observations:
    """Observations of a trial that went well: agent and grader exited 0, nothing changed."""
    return Observations(
        **{"fixture": sha("fixture"), "agent": box(), "collected": Collected(), "grader": box(), **changes}
    )


def checked(name: str = "c", status: str = "passed", grader: str = "boxeval.regex", **more: Any) -> CheckSeen:
    """A record of a check."""
    return CheckSeen(id=name, grader=grader, status=CheckStatus(status), **more)


def declared(name: str = "c", grader: str = "boxeval.regex", **configuration: Any) -> Check:
    """A declared check; a pattern if nothing else is said."""
    told = configuration or {"pattern": "x"}
    return check(grader, name, **told)


def message_of(planned: PlannedTask, observed: Observations) -> FinalMessage:
    return printed_message(planned, observed)


def fault(failure: str, detail: str = "why") -> Observations:
    return Observations(fault=SetupFault(failure_class=FailureClass(failure), detail=detail))


def trial(planned: PlannedTask, observed: Observations, repeat: int = 1, **changes: Any) -> Trial:
    """A trial whose metrics and outcome follow from what was observed."""
    metrics = measure(planned, observed, 1234)
    fields: dict[str, Any] = {
        "trial_id": trial_id(planned, repeat),
        "task": planned.task,
        "target": planned.target,
        "repeat": repeat,
        "identity": planned.identity,
        "started_at": NOON,
        "wall_ms": 1234,
        "steps_ms": {"stage": 1, "run": 1000},
        "observations": observed,
        "metrics": metrics,
        "outcome": decide(planned, observed, metrics),
    }
    return Trial(**{**fields, **changes})


def trial_id(planned: PlannedTask, repeat: int = 1) -> str:
    return f"{planned.task}-{planned.target}-{repeat}"


def plan(*tasks: PlannedTask, repeats: int = 1, run_id: str = "run-1", **changes: Any) -> Plan:
    """A plan of every task, `repeats` times."""
    fields: dict[str, Any] = {
        "run_id": run_id,
        "created_at": NOON,
        "suite": SuiteRef(id="s", title="S", visibility="local", sha256=sha("suite"), file="s.yaml"),
        "tasks": tasks,
        "trials": tuple(
            PlannedTrial(trial_id=trial_id(t, n), task=t.task, target=t.target, repeat=n)
            for n in range(1, repeats + 1)
            for t in tasks
        ),
        "policies": {"default": Policy(version=1, id="default")},
        "images": {"boxeval/base": PlannedImage(name="boxeval/base", image_id="sha256:1")},
        "provenance": PROVENANCE,
    }
    return Plan(**{**fields, **changes})


def write_run(
    directory: Path, key: SigningKey, planned: Plan, observed: dict[str, Observations], *, close: bool = True
) -> str | None:
    """Seal what was observed, by trial id; trials without an entry stay missing. Returns the checkpoint."""
    ledger = Ledger.create(directory, planned, key, now=lambda: NOON)
    for place in planned.trials:
        if place.trial_id in observed:
            ledger.append(trial(planned.task_of(place), observed[place.trial_id], place.repeat))
    if close:
        return ledger.close()
    ledger.release()
    return None


def step(name: str, **changes: Any) -> StepSeen:
    """A step that went well: its box exited 0, it changed nothing, and its boundary was found clean."""
    return StepSeen(
        **{"id": name, "agent": box(), "collected": Collected(), "enforced": Enforcement(), **changes}
    )


def planned_step(
    name: str, writes: tuple[str, ...] | None = None, verify: tuple[str, ...] = ()
) -> PlannedStep:
    """A step of a command, `true`, with a deadline of 7 s, and a check with one of 9 s."""
    return PlannedStep(
        id=name,
        runner=Runner(kind=RunnerKind.EXTERNAL_COMMAND, command="true"),
        writes=writes,
        timeout_ms=7000,
        verify=StepVerify(commands=verify) if verify else None,
        verify_timeout_ms=9000,
    )


def bounded(
    planned: PlannedTask,
    collected: Collected,
    kept: Collected | None = None,
    *,
    step: int | None = None,
    before: tuple[StepSeen, ...] = (),
) -> Enforcement:
    """What enforcing the boundary of a turn gave: its verdict follows from `collected` and `kept`."""
    enforced = Enforcement(kept=kept)
    one = None if step is None else planned.steps[step]
    verdict = judge(
        one.id if one else "",
        one.writes if one else planned.writes,
        planned.workspace.excludes,
        baseline(sha("fixture"), before),
        collected,
        enforced,
    )
    return enforced.model_copy(update={"boundary": verdict})
