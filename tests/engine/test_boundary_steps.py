"""Steps: each over what the steps before left, each in a box of its own, and the first that fails is the last."""

# ruff: noqa: E501  one step a line

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from boxeval.settings import Settings
from boxeval.spec.trial import StepSeen, Trial
from engine_runs import Silent, forget, run, settings_in, write_suite

SUITE = r"""
tasks:
  - id: stacked
    workspace: {kind: inline, files: {f: "first\n", "d/old": "old\n", "d/keep": "keep\n"}}
    steps:
      - {id: one, command: "rm -r d; mkdir d; echo one > d/one; rm f; mkfifo p; echo 1 > log"}
      - {id: two, command: "test ! -e d/old; test ! -e f; test -p p; echo 2 >> log; echo two > d/two", writes: [log, d/]}
      - {id: three, command: "rm -r d; rm log; echo back > f; mkdir d; echo x > d/one", writes: [d/three]}
      - {id: four, command: "touch never"}
    verify:
      commands:
        - 'test "$(cat log)" = "$(printf "1\n2")"; test "$(ls d)" = "$(printf "one\ntwo")"; test "$(cat d/one)" = one'
        - test ! -e f; test -p p; test ! -e never
  - id: whole
    workspace: {kind: inline, files: {a: "one\n", b: "b\n"}}
    steps:
      - {id: there, command: "echo two > a; touch new; rm b"}
      - {id: and-back, command: "echo one > a; rm new"}
    verify:
      commands: ["grep -qx one a; test ! -e new; test ! -e b"]
      assertions: [{metric: patch.filesChanged, op: eq, value: 1}, {metric: boundary.verdictCount, op: eq, value: 2}]
  - id: private
    workspace: {kind: inline, files: {a: "one\n"}}
    steps:
      - id: leave
        command: |
          echo home > ~/mark; echo tmp > /tmp/mark; touch /dev/shm/mark; chmod 0 ~
          setsid sleep 300 >/dev/null 2>&1 &
          python3 -c "import socket, time; s = socket.socket(); s.bind(('127.0.0.1', 5000)); s.listen(); time.sleep(300)" &
          sleep 0.3
      - id: find
        command: |
          test "$(stat -c %a ~)" = 0; chmod 0700 ~
          test "$(cat ~/mark)" = home; test "$(cat /tmp/mark)" = tmp; test ! -e /dev/shm/mark
          test "$(stat -fc %T ~)" = tmpfs; test "$(df -m --output=size ~ | tail -1)" -eq 4
          test "$(cat /proc/[0-9]*/comm | grep -c sleep)" = 0; mkfifo ~/fifo; touch ~/x
          head -c 5000000 /dev/zero > /tmp/big || true; test "$(stat -c %s /tmp/big)" -lt 4300000; rm /tmp/big
        verify: {commands: ["test ! -e ~/mark; test ! -e /tmp/mark"]}
    verify: {commands: ["test ! -e ~/mark; test ! -e /tmp/mark"]}
  - id: private-after
    workspace: {kind: inline, files: {a: "one\n"}}
    steps: [{id: look, command: "test \"$(stat -c %a ~)\" = 700; test -z \"$(ls -A ~ /tmp | grep -v :)\""}]
    verify: {commands: ["true"]}
  - id: checked
    workspace: {kind: inline, files: {a: "one\n"}}
    steps:
      - {id: good, command: "echo two > a", verify: {commands: ["grep -qx two a", "echo spoiled > a"], files: {oracle: o}}}
      - {id: bad, command: "test ! -e oracle; grep -qx two a; echo three > a", verify: {commands: ["true", "grep -qx four a"]}}
      - {id: never, command: "touch never"}
    verify: {commands: ["true"]}
  - id: grader-hangs
    workspace: {kind: inline, files: {a: "one\n"}}
    steps: [{id: one, command: "true", verify: {commands: ["sleep 300"], timeoutMs: 1000}}]
    verify: {commands: ["true"]}
  - id: stops
    workspace: {kind: inline, files: {a: "one\n"}}
    steps:
      - {id: fine, command: "echo two > a"}
      - {id: fails, command: "echo three > a; exit 3"}
      - {id: never, command: "touch never"}
    verify: {commands: ["true"]}
  - id: stops-graded
    workspace: {kind: inline, files: {a: "one\n"}}
    steps: [{id: fails, command: "echo three > a; exit 3"}, {id: never, command: "touch never"}]
    verify: {commands: ["grep -qx three a; test ! -e never"], gradeIncomplete: true}
  - id: times-out
    workspace: {kind: inline, files: {a: "one\n"}}
    steps: [{id: quick, command: "true", timeoutMs: 20000}, {id: slow, command: "sleep 300", timeoutMs: 1000}]
    verify: {commands: ["true"]}
  - id: cwd-taken
    workspace: {kind: inline, files: {sub/a: "one\n"}}
    runner: {kind: external-command, cwd: sub}
    steps: [{id: take, command: "rm -r ../sub"}, {id: miss, command: "true"}]
    verify: {commands: ["true"]}
  - id: asked
    workspace: {kind: inline, files: {a: "one\n"}}
    runner:
      kind: scripted
      script:
        turns:
          - {calls: [{tool: bash, input: {command: "echo two > a"}}]}
          - {text: "one done"}
          - {calls: [{tool: bash, input: {command: "echo three >> a; touch out"}}]}
          - {text: "two done"}
    steps:
      - {id: first, prompt: "Write two.", writes: [a]}
      - {id: between, command: "grep -qx two a", writes: []}
      - {id: second, prompt: "Write three.", writes: [a]}
    verify: {commands: ["test \"$(cat a)\" = \"$(printf 'two\\nthree')\"; test ! -e out"]}
  - id: forbidden
    workspace: {kind: inline, files: {a: "one\n", secret/key: "k"}}
    steps: [{id: there, command: "echo x >> secret/key"}, {id: back, command: "printf k > secret/key"}]
    verify: {commands: ["true"], forbidPaths: [secret/]}
  - id: both
    workspace: {kind: inline, files: {a: "one\n", secret/key: "k"}}
    runner: {kind: external-command, command: "echo x >> secret/key; echo two > a"}
    writes: [a]
    verify: {commands: ["grep -qx k secret/key && grep -qx two a"], forbidPaths: [secret/]}
  - id: cap
    workspace: {kind: inline, files: {a: "one\n"}}
    runner: {kind: external-command, command: "head -c 5000000 /dev/zero > f"}
    writes: [a]
    verify: {commands: ["true"]}
  - id: no-room
    workspace: {kind: inline, files: {a: "one\n"}}
    steps: [{id: fills, command: "i=0; while touch $i; do i=$((i+1)); done 2>/dev/null || :"}, {id: never, command: "true"}]
    verify: {commands: ["true"]}
  - id: only-bounds
    workspace: {kind: inline, files: {a: "one\n"}}
    runner: {kind: external-command, command: "echo two > a"}
    writes: [a]
"""


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Settings]:
    settings = settings_in(tmp_path_factory.mktemp("steps") / "home", cache)
    yield settings
    forget(settings)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, settings: Settings) -> dict[str, Trial]:
    suite = write_suite(tmp_path_factory.mktemp("suite"), SUITE)
    # One slot, so that one trial's home is emptied for the next.
    _, verified = run(suite, settings, Silent(), jobs=1)
    assert verified.complete
    return {trial.task: trial for trial in verified.trials}


def steps_of(trial: Trial) -> dict[str, StepSeen]:
    return {step.id: step for step in trial.observations.steps}


def row(trial: Trial) -> tuple[str | None, ...]:
    outcome = trial.outcome
    return outcome.execution, outcome.grading, outcome.task, outcome.failure_class, outcome.limit


@pytest.mark.contract("S37", "S39")
def test_a_step_is_held_against_the_layers_below_it(finished: dict[str, Trial]) -> None:
    trial = finished["stacked"]
    assert trial.outcome.failure_class == "writes_boundary_violation", trial.outcome
    assert trial.metrics["verifier.exitCode"] == 0
    steps = steps_of(trial)
    assert list(steps) == ["one", "two", "three"], "what depends on a violation does not run"
    found = {name: step.enforced.boundary for name, step in steps.items() if step.enforced}
    verdicts = {name: verdict for name, verdict in found.items() if verdict}
    assert [verdicts[name].status for name in steps] == ["clean", "clean", "rolled-back"]
    assert [verdicts[name].allow for name in steps] == [None, ("log", "d/"), ("d/three",)]
    assert len({verdict.baseline for verdict in verdicts.values()}) == 3
    violations = {violation.path: violation.kind for violation in verdicts["three"].violations}
    assert violations == {"d/one": "changed", "d/two": "deleted", "f": "created", "log": "deleted"}


@pytest.mark.contract("S24")
def test_what_steps_leave_together_is_the_patch(finished: dict[str, Trial]) -> None:
    trial = finished["whole"]
    assert trial.outcome.task == "passed", trial.outcome
    collected = trial.observations.collected
    assert collected is not None
    assert [(change.path, change.change) for change in collected.changes] == [("b", "deleted")]
    assert collected.patch is not None
    assert collected.patch.complete


@pytest.mark.contract("G31", "V2", "V44")
def test_home_and_tmp_last_for_the_trial_and_no_longer(finished: dict[str, Trial]) -> None:
    assert finished["private"].outcome.task == "passed", finished["private"].outcome
    assert finished["private-after"].outcome.task == "passed", finished["private-after"].outcome


@pytest.mark.contract("G35", "S27")
def test_nothing_of_a_step_is_alive_in_the_next(finished: dict[str, Trial]) -> None:
    leave = steps_of(finished["private"])["leave"]
    assert leave.agent.settled
    assert leave.agent.survivors == 0
    assert finished["private"].metrics["process.orphanedChildren"] == 2


@pytest.mark.parametrize(
    ("task", "wanted", "ran"),
    [
        ("checked", ("completed", "completed", "failed", "verifier_failed", None), ["good", "bad"]),
        ("grader-hangs", ("completed", "error", "not_assessed", "timeout", "grader"), ["one"]),
        ("stops", ("failed", "not_requested", "failed", "runner_failed", None), ["fine", "fails"]),
        ("stops-graded", ("failed", "completed", "passed", None, None), ["fails"]),
        ("times-out", ("failed", "not_requested", "failed", "timeout", "agent"), ["quick", "slow"]),
        ("cwd-taken", ("failed", "not_requested", "failed", "runner_failed", None), ["take", "miss"]),
        ("forbidden", ("completed", "completed", "failed", "forbidden_path", None), ["there", "back"]),
        ("both", ("completed", "completed", "failed", "writes_boundary_violation", None), []),
        ("cap", ("failed", "not_requested", "failed", "resource_limit", "workspace changes"), []),
        ("no-room", ("failed", "not_requested", "failed", "resource_limit", "workspace changes"), ["fills"]),
        ("only-bounds", ("completed", "completed", "passed", None, None), []),
    ],
)
@pytest.mark.contract("S19")
def test_outcomes(
    task: str, wanted: tuple[str | None, ...], ran: list[str], finished: dict[str, Trial]
) -> None:
    assert row(finished[task]) == wanted, finished[task].outcome
    assert list(steps_of(finished[task])) == ran


def test_details_name_the_step(finished: dict[str, Trial]) -> None:
    details = {name: trial.outcome.detail or "" for name, trial in finished.items()}
    assert details["checked"] == "check of step bad: command 2 of 2 exited 1: grep -qx four a"
    assert details["stops"] == "step fails exited 3"
    assert details["times-out"] == "step slow passed its deadline of 1000 ms and was killed"
    assert details["both"] == "agent wrote outside its boundary: secret/key (changed); rolled back"


def test_prompts_share_one_script(finished: dict[str, Trial]) -> None:
    trial = finished["asked"]
    assert trial.outcome.failure_class == "writes_boundary_violation", trial.outcome
    assert trial.metrics["verifier.exitCode"] == 0
    assert trial.observations.traffic is not None
    assert trial.observations.traffic.requests == 4


@pytest.mark.contract("S38")
def test_changes_past_a_cap_are_told_as_not_rolled_back(finished: dict[str, Trial]) -> None:
    enforced = finished["cap"].observations.enforced
    assert enforced is not None
    assert enforced.boundary is not None
    assert enforced.boundary.status == "rollback-incomplete"
    assert "the changes of the turn are not known" in enforced.boundary.unrecoverable[0].reason
    assert finished["cap"].metrics["boundary.rollbackIncomplete"] == 1


@pytest.mark.contract("S38")
def test_a_record_that_would_not_fit_into_a_receipt_is_the_candidates_doing(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boxeval.trial.sequence.RECORD_BYTES", 40_000)
    suite = write_suite(
        tmp_path,
        r"""
        tasks:
          - id: floods
            workspace: {kind: inline, files: {a: "one\n"}}
            steps:
              - {id: few, command: "touch b"}
              - {id: many, command: "for i in $(seq 300); do touch x$i; done", writes: []}
              - {id: never, command: "true"}
            verify: {commands: ["true"]}
        """.replace("\n        ", "\n"),
    )
    _, verified = run(suite, settings)
    (trial,) = verified.trials
    assert row(trial) == ("failed", "not_requested", "failed", "resource_limit", "workspace changes")
    many = steps_of(trial)["many"]
    assert many.enforced is not None
    assert many.enforced.boundary is not None
    assert many.enforced.boundary.status == "rollback-incomplete"
    assert list(steps_of(trial)) == ["few", "many"]
