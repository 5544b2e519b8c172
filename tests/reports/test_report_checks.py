"""Every format says which check failed, what was expected and what was received."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

import run_samples as samples
from boxeval.receipts.ledger import Ledger
from boxeval.receipts.trust import Trust
from boxeval.receipts.verify import VerifiedRun, verify
from boxeval.reports.formats import Format, render
from boxeval.reports.show import render_trial
from boxeval.reports.text import render_verified
from boxeval.verdicts.aggregate import aggregate
from report_samples import HOSTILE, KEY, kept


@pytest.fixture
def run(tmp_path: Path) -> VerifiedRun:
    """A trial with a failed pattern, a failed command, an error and a pass."""
    declared = [
        samples.declared("pattern", pattern=r"\d+"),
        samples.declared("command", "boxeval.shell", run="make test"),
        samples.declared("late", "boxeval.shell", run="sleep 9", timeoutMs=5),
        samples.declared("fine", pattern="no"),
    ]
    task = samples.task("t", verify={"checks": declared}, k=2)
    ledger = Ledger.create(tmp_path / "run", samples.plan(task), KEY, now=lambda: samples.NOON)
    broken = samples.box(samples.command(2, stdout=kept(ledger, b"3 tests failed\n" + HOSTILE)))
    late = samples.box(samples.timed_out())
    checks = (
        samples.checked(
            "pattern",
            "failed",
            reason="the pattern does not match",
            expected="a match of /\\d+/m",
            received="'no number'",
        ),
        samples.checked(
            "command",
            "failed",
            "boxeval.shell",
            box=broken,
            reason="exited 2",
            expected="exit code 0",
            received="exit code 2",
        ),
        samples.checked(
            "late",
            "error",
            "boxeval.shell",
            box=late,
            reason="passed its deadline of 5 ms",
            limit="time",
        ),
        samples.checked("fine"),
    )
    agent = samples.box(samples.command(stdout=kept(ledger, b"no number\n" + HOSTILE)))
    observed = samples.seen(agent=agent, grader=None, checks=checks)
    observed = observed.model_copy(update={"message": samples.message_of(task, observed)})
    ledger.append(samples.trial(task, observed))
    ledger.close()
    return verify(tmp_path / "run", Trust((KEY.trusted("test"),)))


@pytest.mark.contract("V14")
@pytest.mark.parametrize("form", [Format.TEXT, Format.MD, Format.JUNIT])
def test_reports_for_people_name_each_check(run: VerifiedRun, form: Format) -> None:
    text = render(form, aggregate(run), run)
    if form is Format.JUNIT:
        text = "".join(Xml.fromstring(text).itertext())
    for wanted in (
        "1 of 4 passed; failed: pattern, command; error: late",
        "failed: the pattern does not match; expected a match of /\\d+/m, received 'no number'",
        "failed: exited 2; expected exit code 0, received exit code 2",
        "error: passed its deadline of 5 ms",
        "stdout of check command",
        "3 tests failed",
    ):
        assert wanted in text
    assert "\x1b" not in text


def test_the_json_report_has_all_checks(run: VerifiedRun) -> None:
    [trial] = json.loads(render(Format.JSON, aggregate(run), run))["trials"]
    assert [(check["id"], check["grader"], check["status"]) for check in trial["checks"]] == [
        ("pattern", "boxeval.regex", "failed"),
        ("command", "boxeval.shell", "failed"),
        ("late", "boxeval.shell", "error"),
        ("fine", "boxeval.regex", "passed"),
    ]
    assert trial["checks"][1]["expected"] == "exit code 0"
    assert trial["checks"][1]["received"] == "exit code 2"


def test_show_has_the_message_and_a_line_a_check(run: VerifiedRun) -> None:
    text = render_trial(run, run.trials[0])
    assert "final message: complete" in text
    assert "  | no number" in text
    assert "pattern  boxeval.regex  failed  the pattern does not match; expected" in text
    assert "fine     boxeval.regex  passed" in text
    assert "\x1b" not in text


def test_what_was_not_graded_again_is_said(run: VerifiedRun) -> None:
    assert "note: t[base]#1: check pattern was not graded again" in render_verified(run)


@pytest.mark.contract("V37")
def test_too_few_trials_for_k_are_shown_so(run: VerifiedRun) -> None:
    text = render(Format.TEXT, aggregate(run), run)
    assert "t[base] k=2" in text
    assert "pass_rate 0, any_of_k n/a, all_of_k n/a, pass_at_k n/a, pass_pow_k n/a, unbiased n/a" in text
