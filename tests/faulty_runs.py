"""One small suite through an engine that fails at one request, and what may come of it."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from boxeval.errors import EngineError
from boxeval.receipts.trust import Trust
from boxeval.receipts.verify import verify
from boxeval.run.controller import run_suite
from boxeval.run.events import RunRequest
from boxeval.sandbox.engine import DEFAULT_HOST, connect
from boxeval.sandbox.ownership import Owner
from boxeval.sandbox.sweep import abandon, of_run
from boxeval.settings import Settings
from boxeval.spec.outcome import FailureClass, Weight
from boxeval.spec.trial import Trial
from engine_proxy import Call, EngineProxy, Fault, Plan
from engine_runs import HEAD, SMALL, Silent, write_suite

TIMEOUT_S = 4
"""Instead of 120, so everything that waits for the engine is thirty times as quick."""
STALL_S = TIMEOUT_S * 70 / 120
"""What 70 s are at the usual 120."""
BOUND_S = 20 * TIMEOUT_S
"""No run of the suite below may last longer, whatever the engine does."""
SHORT = HEAD.replace("timeoutMs: 30000", "timeoutMs: 5000")
SUITE = """
tasks:
  - id: right
    workspace: {kind: inline, files: {a: "one\\n"}}
    runner: {kind: external-command, command: "echo two > a; echo done"}
    verify: {commands: ["grep -qx two a"]}
  - id: wrong
    workspace: {kind: inline, files: {a: "one\\n"}}
    runner: {kind: external-command, command: "echo three > a"}
    verify: {commands: ["grep -qx two a"]}
"""
OF_THE_ENGINE = (
    FailureClass.COMMAND_ERROR,
    FailureClass.GRADER_ERROR,
    FailureClass.EVIDENCE_MISSING,
    FailureClass.ISOLATION_FAILED,
)
TRUTH = {"right": "passed", "wrong": "failed"}


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended: `refused` is the error's text if it never became one. `wrong` says what must not be."""

    kinds: dict[str, str]
    refused: str | None
    took_s: float
    calls: tuple[Call, ...]
    wrong: tuple[str, ...]
    notes: tuple[str, ...]


def at(number: int, fault: Fault) -> Plan:
    """The request with this number fails."""
    return lambda call: fault if call.number == number else None


def named(name: str, fault: Fault, times: int = 1) -> Plan:
    """The first requests of this name fail."""
    left = [fault] * times
    return lambda call: left.pop() if call.name == name and left else None


@contextmanager
def proxied(plan: Plan, timeout_s: int = TIMEOUT_S, slow_s: float = STALL_S) -> Iterator[EngineProxy]:
    """A proxy before the machine's engine, which `DOCKER_HOST` names meanwhile."""
    engine = os.environ.get("DOCKER_HOST") or DEFAULT_HOST
    before = {name: os.environ.get(name) for name in ("DOCKER_HOST", "BOXEVAL_ENGINE_TIMEOUT_S")}
    with (
        tempfile.TemporaryDirectory(prefix="bx", dir="/tmp") as place,
        EngineProxy(engine, Path(place) / "s", plan, slow_s) as proxy,
    ):
        os.environ |= {"DOCKER_HOST": proxy.host, "BOXEVAL_ENGINE_TIMEOUT_S": str(timeout_s)}
        try:
            yield proxy
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


def faulty_run(directory: Path, settings: Settings, plan: Plan, suite: str = SUITE) -> Ended:
    """Run the suite over an engine that fails by `plan`; remove what a next start would remove."""
    watcher, began = Silent(), time.monotonic()
    refused, end = None, None
    kinds, wrong = dict[str, str](), list[str]()
    with proxied(plan) as proxy:
        try:
            place = write_suite(directory, suite, SHORT)
            # Else the policy lets a keeper collect for five minutes, whatever the engine's own bounds are.
            (directory / "small.yaml").write_text(
                SMALL.replace("bytes: 4000000", "bytes: 4000000, timeMs: 5000")
            )
            end = run_suite(RunRequest(place, jobs=1), watcher, settings)
        except EngineError as error:
            refused = str(error)
        except Exception as error:
            refused = f"crashed: {error!r}"
            wrong.append(refused)
        took_s = time.monotonic() - began
    if end is not None:
        verified = verify(end.directory, Trust.local(settings))
        for trial in verified.trials:
            kinds[trial.task] = told(trial)
            wrong += [] if is_right(trial) else [f"{trial.task}: {told(trial)}"]
        if len(verified.trials) + len(verified.missing) != len(TRUTH):
            wrong.append("a trial is neither sealed nor missing")
    if refused is None or hasattr(watcher, "plan"):
        wrong += swept(settings, watcher.plan.run_id, () if end is None else end.left_behind)
    if took_s > BOUND_S:
        wrong.append(f"took {took_s:.0f} s")
    return Ended(kinds, refused, took_s, tuple(proxy.calls), tuple(wrong), tuple(watcher.notes))


def told(trial: Trial) -> str:
    outcome = trial.outcome
    return f"{outcome.task}, {outcome.failure_class}: {outcome.detail}"


def is_right(trial: Trial) -> bool:
    """The verdict of a run without faults, or void with a detail that names the engine or a box."""
    outcome = trial.outcome
    if outcome.weight is Weight.SCORED:
        return outcome.task == TRUTH[trial.task] and outcome.failure_class in (
            None,
            FailureClass.VERIFIER_FAILED,
        )
    return outcome.failure_class in OF_THE_ENGINE and bool(outcome.detail)


def swept(settings: Settings, run_id: str, left_behind: tuple[str, ...]) -> list[str]:
    """What is left of a run without a word about it, or could not be removed by its labels either."""
    engine, owner = connect(), Owner.here(settings.data_dir)
    try:
        left = of_run(engine, owner, run_id)
        wrong = [f"left without a word: {one.kind} {one.name}" for one in left if not left_behind]
        abandon(engine, owner, run_id)
        return wrong + [f"cannot be removed: {one.kind} {one.name}" for one in of_run(engine, owner, run_id)]
    finally:
        engine.close()
