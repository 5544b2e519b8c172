"""Boundary verdicts and restored files in `show` and in the report of a red trial."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import run_samples as samples
from boxeval.receipts.keys import SigningKey
from boxeval.receipts.trust import Trust
from boxeval.receipts.verify import VerifiedRun, verify
from boxeval.reports.show import render_trial
from boxeval.reports.text import render
from boxeval.spec.plan import PlannedTask
from boxeval.spec.trial import Collected, PutBack
from boxeval.verdicts.aggregate import aggregate

KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
EVIL = "tests/\x1b[2J\n.py"
OUTSIDE = Collected(changes=(samples.change(EVIL), samples.change("x.log")))


def sealed(directory: Path, task: PlannedTask, **seen: Any) -> VerifiedRun:
    samples.write_run(directory / "run", KEY, samples.plan(task), {"fix-base-1": samples.seen(**seen)})
    return verify(directory / "run", Trust((KEY.trusted("test"),)))


def test_a_verdict_is_shown_and_escaped(tmp_path: Path) -> None:
    workspace = samples.task().workspace.model_copy(update={"excludes": ("*.log",)})
    task = samples.task(writes=("src/", "a.txt"), workspace=workspace)
    kept = Collected(changes=(samples.change("x.log"),))
    run = sealed(tmp_path, task, collected=OUTSIDE, enforced=samples.bounded(task, OUTSIDE, kept))
    shown = render_trial(run, run.trials[0])
    assert "write boundary of agent: rollback-incomplete" in shown
    assert "allowed  src/, a.txt" in shown
    assert "violation: tests/\\x1b[2J\\x0a.py (created)" in shown
    assert "! x.log could not be put back: it is excluded from the snapshot" in shown
    report = render(aggregate(run), run)
    assert "put back  agent: rollback-incomplete, 1 of 2 violations undone" in report
    assert "\x1b" not in shown + report


def test_restored_files_are_shown(tmp_path: Path) -> None:
    task = samples.task(protect=("tests/",))
    enforced = samples.bounded(samples.task(writes=()), Collected()).model_copy(
        update={"boundary": None, "restored": (PutBack(path=EVIL, kind="created"),), "kept": Collected()}
    )
    run = sealed(tmp_path, task, collected=OUTSIDE, enforced=enforced)
    shown = render_trial(run, run.trials[0])
    assert "protected paths restored after agent: 1" in shown
    assert "restored: tests/\\x1b[2J\\x0a.py (created)" in shown


def test_an_assertion_that_spoils_an_expected_failure_is_named(tmp_path: Path) -> None:
    verify_ = {"commands": ("true",), "assertions": (samples.wants("verifier.exitCode", "eq", 0),)}
    task = samples.task(expect="failed", expect_class="verifier_failed", verify=verify_)
    run = sealed(tmp_path, task, grader=samples.box(samples.command(1)))
    report = render(aggregate(run), run)
    assert "does not hold  verifier.exitCode eq 0: it is 1" in report
