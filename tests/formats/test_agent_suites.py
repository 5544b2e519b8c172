"""Tasks of kind `agent` and of clio: what is accepted, what is refused by name, what a target decides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from boxeval.rules.selection import image_of, runner_of, steps_of, timeouts_of
from boxeval.spec.suite import RunnerKind
from suite_samples import changed, load, problems

R, TARGET = "tasks.0.runner", "matrix.targets.0"


def runner(**fields: Any) -> list[tuple[str, object]]:
    return [(R, {"kind": "agent", "prompt": "Do it.", "script": {"turns": [{"text": "x"}]}, **fields})]


@pytest.mark.parametrize(
    "changes",
    [
        runner(agent="codex", host={"entrypoint": "app-server", "transcripts": True}),
        runner(agent="claude", host={"effort": "high", "artifacts": {"notes": ".claude/notes"}}),
        [*runner(), (TARGET + ".agent", "opencode")],
        runner(agent="reference", permissions="read-only"),
        [(R, {"kind": "agent", "agent": "command", "command": "true"})],
        [*runner(agent="clio"), ("tasks.0.image", "example/clio")],
        [(R, {"kind": "context-index"}), ("tasks.0.image", "example/clio")],
    ],
)
def test_accepted(tmp_path: Path, changes: list[tuple[str, object]]) -> None:
    load(tmp_path, changed(*changes))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (runner(), "tasks[0].runner: kind `agent` needs `agent`, here or at target"),
        (runner(agent="copilot"), "tasks[0].runner.agent: must be one of"),
        (runner(agent="codex", prompt=" "), "tasks[0].runner: agent `codex` needs `prompt`"),
        (
            runner(agent="codex", command="true"),
            "tasks[0].runner.command: agent `codex` does not take `command`",
        ),
        (runner(agent="codex", permissions="full"), "agent `codex` does not take `permissions`"),
        (
            runner(agent="claude", host={"entrypoint": "exec"}),
            "host.entrypoint: agent `claude` has no `entrypoint`",
        ),
        (runner(agent="aider", host={"effort": "low"}), "host.effort: agent `aider` has no `effort`"),
        (runner(agent="codex", host={"artifacts": {"notes": "../x"}}), "artifacts.notes: `../x` leaves"),
        (runner(agent="codex", host={"artifacts": {"N": "x"}}), "host.artifacts"),
        (runner(agent="clio"), "tasks[0].runner: `clio` needs `image`, one that has its CLI"),
        (
            [(R, {"kind": "clio-run", "prompt": "x", "script": {"turns": [{"text": "x"}]}})],
            "`clio` needs `image`",
        ),
        ([(R, {"kind": "context-index", "prompt": "x"})], "kind `context-index` does not take `prompt`"),
        (
            [*runner(agent="codex", script=None), ("matrix.targets.0.model", None)],
            "needs `script`, or a model",
        ),
    ],
)
@pytest.mark.contract("S3", "S11", "G55")
def test_refused_by_name(tmp_path: Path, changes: list[tuple[str, object]], said: str) -> None:
    found = problems(tmp_path, changed(*changes))
    assert any(said in problem for problem in found), found


@pytest.mark.contract("G54")
def test_an_agent_of_its_target_brings_its_image_and_its_deadline(tmp_path: Path) -> None:
    changes = [*runner(), (TARGET + ".agent", "codex")]
    suite = load(tmp_path, changed(*changes)).suite
    task, target = suite.tasks[0], suite.matrix.targets[0]
    assert runner_of(task, target).agent == "codex"
    assert image_of(suite, task, target) == "boxeval/agents/codex"
    # Ten minutes for the turn of an agent, a minute for the grader, unless the suite says more (G54).
    assert timeouts_of(suite, task) == (600_000, 60_000)


def test_agents_that_are_other_kinds_become_them(tmp_path: Path) -> None:
    suite = load(tmp_path, changed(*runner(agent="reference"))).suite
    resolved = runner_of(suite.tasks[0], suite.matrix.targets[0])
    assert (resolved.kind, resolved.agent) == (RunnerKind.SCRIPTED, None)


def test_prompts_of_steps_are_the_agent_s(tmp_path: Path) -> None:
    steps = [{"id": "ask", "prompt": "x"}, {"id": "do", "command": "true"}]
    given = {"kind": "agent", "agent": "claude", "script": {"turns": [{"text": "x"}]}}
    suite = load(tmp_path, changed((R, given), ("tasks.0.steps", steps))).suite
    kinds = [step.runner.kind for step in steps_of(suite, suite.tasks[0], suite.matrix.targets[0])]
    assert kinds == [RunnerKind.AGENT, RunnerKind.EXTERNAL_COMMAND]
