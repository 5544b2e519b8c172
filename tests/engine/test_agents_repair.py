"""Real agents, each in its own image, mend the same small bug on a scripted model, with no network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from boxeval.errors import ImageError
from boxeval.receipts.blobs import BlobStore
from boxeval.sandbox.engine import Engine
from boxeval.sandbox.images import ensure
from boxeval.settings import Settings
from boxeval.spec.agent_record import CallEnd, ClaimedUsage, TurnEnd
from boxeval.spec.trial import Trial
from engine_runs import forget, run, settings_in, write_suite

pytestmark = [pytest.mark.engine, pytest.mark.slow]

FIX = "sed -i 's/a - b/a + b/' calc.py"
DONE = "I mended add in calc.py."


@dataclass(frozen=True)
class Case:
    """An agent, the tool of its that runs a shell command, and what it says of two requests of 100 and 20 tokens."""

    agent: str
    tool: str
    argument: str
    call: str
    usage: ClaimedUsage | None
    more: dict[str, Any] = field(default_factory=dict)
    host: dict[str, Any] = field(default_factory=dict)


CASES = [
    Case("codex", "exec_command", "cmd", "command_execution", ClaimedUsage(input=200, output=40)),
    Case("codex", "exec_command", "cmd", "commandExecution", None, host={"entrypoint": "app-server"}),
    Case("claude", "Bash", "command", "Bash", ClaimedUsage(input=200, output=40), {"description": "mend it"}),
    Case(
        "opencode", "bash", "command", "bash", ClaimedUsage(input=200, output=40), {"description": "mend it"}
    ),
]


def suite_of(case: Case) -> str:
    turns = [
        {"calls": [{"tool": case.tool, "input": {case.argument: FIX, **case.more}}]},
        {"text": DONE},
    ]
    files = {"calc.py": "def add(a, b):\n    return a - b\n"}
    check = "import calc; assert calc.add(2, 3) == 5"
    task = {
        "id": "repair",
        "workspace": {"kind": "inline", "files": files},
        "runner": {
            "kind": "agent",
            "agent": case.agent,
            "prompt": "Mend add in calc.py.",
            "script": {"turns": turns},
        },
        "verify": {
            "commands": [f"python3 -c '{check}'"],
            "checks": [{"id": "says", "grader": "boxeval.regex", "configuration": {"pattern": "mended add"}}],
        },
    }
    if case.host:
        task["runner"]["host"] = case.host  # type: ignore[index]
    return "\ntasks: " + json.dumps([task]) + "\n"


HEAD = """\
version: 2
suite: {id: agents, title: Agents, visibility: local}
defaults: {timeoutMs: 120000}
matrix: {targets: [{id: local}]}
"""


@pytest.fixture
def settings(tmp_path: Path, cache: Path) -> Iterator[Settings]:
    settings = settings_in(tmp_path / "bx", cache)
    yield settings
    forget(settings)


def names(case: Case) -> str:
    return "-".join((case.agent, *map(str, case.host.values())))


def blob(directory: Path, sha256: str | None) -> bytes:
    assert sha256 is not None
    return BlobStore(directory / "blobs").get(sha256)


@pytest.mark.parametrize("case", CASES, ids=names)
@pytest.mark.contract("G38", "G39", "G40", "G42", "G50", "G55", "G56")
def test_an_agent_mends_the_bug(case: Case, tmp_path: Path, engine: Engine, settings: Settings) -> None:
    try:
        ensure(engine, f"boxeval/agents/{case.agent}", note=lambda _: None)
    except ImageError as error:
        pytest.fail(f"the image of {case.agent} cannot be had here, so nothing is proved of it: {error}")
    end, verified = run(write_suite(tmp_path, suite_of(case), HEAD), settings)
    (trial,) = verified.trials
    record = trial.observations.agent_record
    assert record is not None, trial.outcome
    assert trial.outcome.task == "passed", (trial.outcome, record)
    (turn,) = record.turns
    assert (record.host, turn.end) == (f"boxeval.host.{case.agent}", TurnEnd.COMPLETED)
    message = trial.observations.message
    assert message is not None
    assert blob(end.directory, message.sha256).decode() == DONE
    assert [(call.name, call.end) for call in turn.calls] == [(case.call, CallEnd.COMPLETED)]
    assert turn.preflight is not None
    assert turn.preflight.version
    assert measured(trial) == (200, 40)
    claimed = turn.usage and (turn.usage.input, turn.usage.output)
    assert claimed == (case.usage and (case.usage.input, case.usage.output)), turn.usage_reason
    (events,) = turn.artifacts
    assert (events.id, events.status) == (f"boxeval.host.{case.agent}.events", "complete")
    assert blob(end.directory, events.sha256)
    collected = trial.observations.collected
    assert collected is not None
    assert collected.patch is not None
    assert b"+    return a + b" in blob(end.directory, collected.patch.sha256)


def measured(trial: Trial) -> tuple[Any, Any]:
    return trial.metrics["tokens.input"], trial.metrics["tokens.output"]
