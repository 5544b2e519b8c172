"""`boxeval.git-head` on real and hostile repositories (contract G22, G23)."""

from __future__ import annotations

from pathlib import Path

import pytest

from boxeval.receipts.verify import VerifiedRun
from boxeval.settings import Settings
from engine_runs import run, write_suite

COMMIT = "git -c user.name=x -c user.email=x@example.com commit -q"
AMENDED = f"base=$(git rev-parse HEAD); {COMMIT} --amend -m other; head=$(git rev-parse HEAD)"
CANDIDATES = {
    "honest": f"{COMMIT} --allow-empty -m two",
    "idle": "true",
    "grafted": f'{AMENDED}; mkdir -p .git/info; echo "$head $base" > .git/info/grafts',
    "replaced": f"""{AMENDED}
        forged=$(git -c user.name=x -c user.email=x@example.com commit-tree -m forged -p $base $head^{{tree}})
        git replace -f $head $forged""",
    "configured": f"""{COMMIT} --allow-empty -m two
        printf '#!/bin/sh\\ntouch /workspace/canary; echo forged' > tool; chmod +x tool
        git config core.fsmonitor /workspace/tool; git config core.pager /workspace/tool
        git config core.hooksPath /workspace; git config core.worktree /tmp
        git config alias.rev-parse '!/workspace/tool'""",
    "linked": "mv .git elsewhere; ln -s elsewhere .git",
    "redirected": "mv .git elsewhere; echo 'gitdir: elsewhere' > .git",
    "gone": "rm -rf .git",
    "unborn": "git symbolic-ref HEAD refs/heads/none",
    "garbage": "head -c 300 /dev/urandom > .git/HEAD",
}
EXPECTED = {
    "honest": "passed failed passed",
    "idle": "failed passed passed",
    "grafted": "passed failed failed",
    "replaced": "passed failed failed",
    "configured": "passed failed passed",
    **dict.fromkeys(("linked", "redirected", "gone", "unborn", "garbage"), "error error error"),
}
"""Of changed, unchanged and base-ancestor."""


def suite() -> str:
    lines = ["tasks:"]
    for name, command in CANDIDATES.items():
        lines += [
            f"  - id: {name}",
            '    workspace: {kind: generated, commits: [{message: one, files: {a.txt: "one\\n"}}]}',
            "    runner:",
            "      kind: external-command",
            "      command: |",
            *(f"        {line.strip()}" for line in command.splitlines()),
            "    verify:",
            "      checks:",
            *(
                f"        - {{id: {kind}, grader: boxeval.git-head, configuration: {{kind: {kind}}}}}"
                for kind in ("changed", "unchanged", "base-ancestor")
            ),
        ]
    return "\n".join(lines)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("git-head")


@pytest.fixture(scope="module")
def verified(home: Path, settings: Settings) -> VerifiedRun:
    return run(write_suite(home / "suite", suite()), settings)[1]


@pytest.mark.contract("G22", "G23")
def test_head_against_what_it_was(verified: VerifiedRun) -> None:
    found, said = {}, {}
    for trial in verified.trials:
        found[trial.task] = " ".join(check.status.value for check in trial.observations.checks)
        said[trial.task] = (trial.outcome.detail, trial.observations.git_head)
    assert found == EXPECTED, said


@pytest.mark.contract("G23")
def test_one_observation_holds_base_current_and_ancestry(verified: VerifiedRun) -> None:
    honest = next(trial for trial in verified.trials if trial.task == "honest").observations.git_head
    idle = next(trial for trial in verified.trials if trial.task == "idle").observations.git_head
    assert honest and idle
    assert honest.base == idle.base == idle.current != honest.current
    assert (honest.base_is_ancestor, idle.base_is_ancestor) == (True, True)
    gone = next(trial for trial in verified.trials if trial.task == "gone")
    assert (gone.outcome.grading, gone.outcome.task) == ("error", "not_assessed")
    assert gone.observations.git_head and gone.observations.git_head.base == idle.base
