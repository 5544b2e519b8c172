"""Every failure class that this version has, provoked for real in one run, with the row of the outcomes table
that it needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from boxeval.spec.trial import Trial
from boxeval.verdicts.aggregate import aggregate, exit_code
from engine_runs import Silent, forget, run, settings_in, write_suite

SUITE = r"""
models:
  short: {script: {turns: [{calls: [{tool: bash, input: {command: "true"}}]}], usage: {input: 10, output: 5}}}
tasks:
  - id: passed
    workspace: {kind: inline, files: {a: "one\n"}}
    runner: {kind: external-command, command: "echo two > a"}
    verify:
      commands: ["grep -qx two a"]
      forbidPaths: ["secret/"]
      assertions: [{metric: patch.filesChanged, op: eq, value: 1}, {metric: result.pass, op: eq, value: true}]
  - id: verifier_failed
    workspace: {kind: inline, files: {a: "one\n"}}
    runner: {kind: external-command, command: "true"}
    verify: {commands: ["true", "grep -qx two a", "touch never"]}
  - id: assertion_failed
    workspace: {kind: inline, files: {a: "one\n"}}
    runner: {kind: external-command, command: "touch b c"}
    verify: {assertions: [{metric: patch.filesChanged, op: lte, value: 1}]}
  - id: assertion_unresolved
    workspace: {kind: inline, files: {a: "one\n"}}
    runner: {kind: external-command, command: "true"}
    verify: {assertions: [{metric: tokens.total, op: neq, value: 7}]}
  - id: forbidden_path
    workspace: {kind: inline, files: {a: "one\n", "secret/key": "k"}}
    runner: {kind: external-command, command: "echo two > a; echo x >> secret/key"}
    verify: {commands: ["grep -qx two a"], forbidPaths: ["secret/"]}
  - id: runner_failed
    workspace: {kind: inline, files: {a: "one\n"}}
    runner: {kind: external-command, command: "echo why >&2; exit 137"}
    verify: {commands: ["true"]}
  - id: runner_failed_graded
    workspace: {kind: inline, files: {a: "one\n"}}
    runner: {kind: external-command, command: "echo two > a; exit 3"}
    verify: {commands: ["grep -qx two a"], gradeIncomplete: true}
  - id: timeout_agent
    workspace: {kind: inline, files: {a: "one\n"}}
    runner: {kind: external-command, command: "setsid sleep 300 & while :; do :; done", timeoutMs: 1000}
    verify: {commands: ["true"]}
  - id: timeout_agent_graded
    workspace: {kind: inline, files: {a: "one\n"}}
    runner: {kind: external-command, command: "echo two > a; sleep 300", timeoutMs: 1000}
    verify: {commands: ["grep -qx two a"], gradeIncomplete: true}
  - id: timeout_grader
    workspace: {kind: inline, files: {a: "one\n"}}
    runner: {kind: external-command, command: "true"}
    verify: {commands: ["sleep 300"], timeoutMs: 1000}
  - id: oom
    workspace: {kind: inline, files: {a: "one\n"}}
    runner: {kind: external-command, command: "exec python3 -c 'x = bytearray(1 << 20) * 400'"}
    verify: {commands: ["true"]}
  - id: oom_grader
    workspace: {kind: inline, files: {a: "one\n"}}
    runner: {kind: external-command, command: "true"}
    verify: {commands: ["exec python3 -c 'x = bytearray(1 << 20) * 400'"]}
  - id: disk
    workspace: {kind: inline, files: {a: "one\n"}}
    runner: {kind: external-command, command: "i=0; while head -c 1000000 /dev/zero > f$i; do i=$((i+1)); done; exit 1"}
    verify: {commands: ["true"]}
  - id: file_size
    workspace: {kind: inline, files: {a: "one\n"}}
    runner: {kind: external-command, command: "exec head -c 20000000 /dev/zero > large"}
    verify: {commands: ["true"]}
  - id: setup_failed
    workspace: {kind: inline, files: {a: "one\n"}, setup: ["true", "echo broken >&2; exit 4"]}
    runner: {kind: external-command, command: "true"}
    verify: {commands: ["true"]}
  - id: cwd_missing
    workspace: {kind: inline, files: {a: "one\n"}}
    runner: {kind: external-command, command: "true", cwd: absent}
    verify: {commands: ["true"]}
  - id: collect_cap
    workspace: {kind: inline, files: {a: "one\n"}}
    runner: {kind: external-command, command: "head -c 3000000 /dev/zero > f; head -c 3000000 /dev/zero > g"}
    verify: {commands: ["true"]}
  - id: image_missing
    image: "localhost:1/no/such:image"
    workspace: {kind: inline, files: {a: "one\n"}}
    runner: {kind: external-command, command: "true"}
    verify: {commands: ["true"]}
  - id: spawn
    workspace: {kind: inline, files: {a: "one\n"}}
    runner: {kind: external-command, command: "no-such-program", args: ["x"]}
    verify: {commands: ["true"]}
  - id: script_ran_out
    workspace: {kind: inline, files: {a: "one\n"}}
    runner: {kind: scripted, prompt: "go", script: {turns: [{calls: [{tool: bash, input: {command: "echo two > a"}}]}]}}
    verify: {commands: ["grep -qx two a"], gradeIncomplete: true}
  - id: not_counted
    workspace: {kind: inline, files: {a: "one\n"}}
    runner: {kind: external-command, command: "true"}
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[dict[str, Trial]]:
    home = tmp_path_factory.mktemp("classes")
    settings = settings_in(home / "home", cache)
    watcher = Silent()
    _, verified = run(write_suite(home, SUITE), settings, watcher, jobs=2)
    assert verified.complete
    report = aggregate(verified)
    assert exit_code(report) == 1
    yield {trial.task: trial for trial in verified.trials}
    forget(settings)


# execution, grading, task, failureClass, verdictClass, weight, limit
ROWS = {
    "passed": ("completed", "completed", "passed", None, None, "scored", None),
    "verifier_failed": ("completed", "completed", "failed", "verifier_failed", "assertion", "scored", None),
    "assertion_failed": ("completed", "completed", "failed", "assertion_failed", "assertion", "scored", None),
    "assertion_unresolved": (
        "completed",
        "completed",
        "failed",
        "assertion_unresolved",
        "assertion",
        "scored",
        None,
    ),
    "forbidden_path": ("completed", "completed", "failed", "forbidden_path", "contract", "scored", None),
    "runner_failed": ("failed", "not_requested", "failed", "runner_failed", "assertion", "scored", None),
    "runner_failed_graded": ("failed", "completed", "passed", None, None, "scored", None),
    "timeout_agent": ("failed", "not_requested", "failed", "timeout", "timeout", "scored", "agent"),
    "timeout_agent_graded": ("failed", "completed", "passed", None, None, "scored", "agent"),
    "timeout_grader": ("completed", "error", "not_assessed", "timeout", "infra", "void", "grader"),
    "oom": ("failed", "not_requested", "failed", "oom", "assertion", "scored", "memory"),
    "oom_grader": ("completed", "error", "not_assessed", "grader_error", "infra", "void", "memory"),
    "disk": ("failed", "not_requested", "failed", "resource_limit", "assertion", "scored", "disk"),
    "file_size": ("failed", "not_requested", "failed", "resource_limit", "assertion", "scored", "file size"),
    "setup_failed": ("not_run", "not_requested", "not_assessed", "setup_failed", "infra", "void", None),
    "cwd_missing": ("not_run", "not_requested", "not_assessed", "cwd_missing", "infra", "void", None),
    "collect_cap": (
        "failed",
        "not_requested",
        "failed",
        "resource_limit",
        "assertion",
        "scored",
        "workspace changes",
    ),
    "image_missing": ("failed", "not_requested", "not_assessed", "command_error", "infra", "void", None),
    "spawn": ("failed", "not_requested", "not_assessed", "command_error", "infra", "void", None),
    "script_ran_out": ("failed", "completed", "passed", None, None, "scored", None),
    "not_counted": ("completed", "not_requested", "not_assessed", None, None, "not_counted", None),
}


@pytest.mark.parametrize("task", ROWS)
@pytest.mark.contract("S19")
def test_outcome(task: str, finished: dict[str, Trial]) -> None:
    """Known failures B5 (a late grader) and C10 (an image that cannot be had) among them."""
    outcome = finished[task].outcome
    row = (
        outcome.execution,
        outcome.grading,
        outcome.task,
        outcome.failure_class,
        outcome.verdict_class,
        outcome.weight,
    )
    assert row == ROWS[task][:6], outcome
    assert outcome.limit == ROWS[task][6], outcome


@pytest.mark.contract("S17", "G15")
def test_commands_stop_at_the_first_failure(finished: dict[str, Trial]) -> None:
    grader = finished["verifier_failed"].observations.grader
    assert grader is not None
    assert [command.exit_code for command in grader.commands] == [0, 1]
    assert finished["verifier_failed"].metrics["verifier.exitCode"] == 1


def test_an_own_exit_of_137_is_not_a_kill(finished: dict[str, Trial]) -> None:
    agent = finished["runner_failed"].observations.agent
    assert agent is not None
    assert (agent.commands[0].exit_code, agent.commands[0].signal, agent.oom_kills) == (137, None, 0)


@pytest.mark.contract("G35", "S27")
def test_nothing_survives_a_deadline(finished: dict[str, Trial]) -> None:
    """Known failure B1."""
    agent = finished["timeout_agent"].observations.agent
    assert agent is not None
    assert agent.settled
    assert agent.survivors == 0
    assert finished["timeout_agent"].wall_ms < 1000 + 5000


def test_details_name_the_command_and_what_it_said(finished: dict[str, Trial]) -> None:
    detail = finished["setup_failed"].outcome.detail or ""
    assert "set-up command 2 of 2 exited 4" in detail
    assert "broken" in detail
    assert "localhost:1/no/such:image" in (finished["image_missing"].outcome.detail or "")


@pytest.mark.contract("S47", "S49")
def test_a_script_that_runs_out_is_told_beside_a_pass(finished: dict[str, Trial]) -> None:
    traffic = finished["script_ran_out"].observations.traffic
    assert traffic is not None
    assert traffic.requests == 1
    assert "script_exhausted" in (traffic.error or "")
    assert finished["script_ran_out"].metrics["tokens.total"] == 120
    assert finished["script_ran_out"].wall_ms > 0
