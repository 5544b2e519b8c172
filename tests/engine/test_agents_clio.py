"""clio-coder's kinds, end to end, with a stand-in for its CLI: boxeval has no image with that (docs/agents.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from boxeval.settings import Settings
from engine_runs import forget, run, settings_in, write_suite

pytestmark = [pytest.mark.engine, pytest.mark.slow]

INDEX = {"indexedSourceFiles": 3, "coverage": 0.75, "structuralHash": "abc", "digestTokens": 120}
SAID = {
    "role": "assistant",
    "responseId": "r1",
    "content": [{"type": "text", "text": "I made it."}],
    "usage": {"input": 100, "output": 20, "cacheRead": 5, "cacheWrite": 0},
}
EVENTS = [
    {"type": "tool_execution_start", "toolName": "bash", "toolCallId": "c1"},
    {"type": "tool_execution_end", "toolCallId": "c1", "isError": False},
    {"type": "message_end", "message": SAID},
    {"type": "agent_end"},
]
CLI = f"""#!/bin/sh
case "$1 $2" in
"--version ") echo "clio-coder 0.3.0" ;;
"context index") echo '{json.dumps(INDEX)}' ;;
"context init") echo '{json.dumps(INDEX | {"indexedSourceFiles": 4})}' ;;
"run --json") echo made > made.txt; cat <<END
{chr(10).join(map(json.dumps, EVENTS))}
END
;;
*) exit 64 ;;
esac
"""


def equal(**metrics: object) -> list[dict[str, object]]:
    return [{"metric": name.replace("_", "."), "op": "eq", "value": value} for name, value in metrics.items()]


def task(name: str, kind: str, metrics: list[dict[str, object]], **more: object) -> dict[str, object]:
    return {
        "id": name,
        "image": "boxeval/base",
        "workspace": {"kind": "inline", "files": {"bin/clio-coder": {"text": CLI, "mode": "0755"}}},
        "runner": {"kind": kind, "env": {"PATH": "/workspace/bin:/usr/local/bin:/usr/bin:/bin"}, **more},
        "verify": {"assertions": metrics},
    }


INDEXED = equal(context_coverage=0.75, context_structuralHash="abc", context_digestTokens=120)
TASKS = [
    task("index", "context-index", [*INDEXED, *equal(context_indexedFiles=3)]),
    task("init", "context-init", [*INDEXED, *equal(context_indexedFiles=4)]),
    task(
        "run",
        "clio-run",
        # The input with what was cached, and the output: 105 + 20.
        equal(receiptUsage_totalTokens=125, tools_failed=0, patch_filesChanged=1, tokens_total=0),
        prompt="Make it.",
        script={"turns": [{"text": "never asked"}]},
    ),
]


@pytest.fixture
def settings(tmp_path: Path, cache: Path) -> Iterator[Settings]:
    settings = settings_in(tmp_path / "bx", cache)
    yield settings
    forget(settings)


@pytest.mark.contract("S11", "S21", "S30")
def test_its_run_and_its_context_commands_are_measured(tmp_path: Path, settings: Settings) -> None:
    _, verified = run(write_suite(tmp_path, "\ntasks: " + json.dumps(TASKS) + "\n"), settings)
    found = {trial.task: (str(trial.outcome.task), trial.outcome.detail) for trial in verified.trials}
    assert {name: state for name, (state, _) in found.items()} == dict.fromkeys(
        ("index", "init", "run"), "passed"
    ), found
    for trial in verified.trials:
        record = trial.observations.agent_record
        assert record is not None
        assert record.host == "boxeval.host.clio"
        (turn,) = record.turns
        assert turn.preflight is not None
        assert turn.preflight.version == "clio-coder 0.3.0"
