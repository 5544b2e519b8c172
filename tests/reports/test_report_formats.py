"""All formats tell the same truth about the same run."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from xml.dom import minidom

import jsonschema
import pytest
from markdown_it import MarkdownIt

import report_samples
from boxeval.receipts.verify import VerifiedRun
from boxeval.reports.formats import Format, render
from boxeval.reports.json import report_schema
from boxeval.reports.short import render_short
from boxeval.reports.words import kind_of_line, number
from boxeval.spec.report import Cost, Report
from boxeval.verdicts.aggregate import aggregate


@pytest.fixture
def run(tmp_path: Path) -> VerifiedRun:
    return report_samples.every_kind(tmp_path / "run")


@pytest.fixture
def report(run: VerifiedRun) -> Report:
    return aggregate(run)


COUNTS = Counter(report_samples.EXPECTED_KINDS.values())


def test_kinds_are_those_of_the_outcomes_table(report: Report) -> None:
    kinds = {line.key: str(kind_of_line(line)) for line in report.trials}
    assert {**kinds, **dict.fromkeys(report.missing, "missing")} == report_samples.EXPECTED_KINDS


@pytest.mark.contract("S33", "P24")
def test_text_counts(run: VerifiedRun, report: Report) -> None:
    text = render(Format.TEXT, report, run)
    assert text.splitlines()[0] == "RED: 3 of 5 scored trials did not end as expected"
    assert text.splitlines()[1] == (
        "8 trials: 1 passed, 1 failed as intended, 1 failed, 1 failed otherwise than intended, "
        "1 passed, but was to fail, 1 void, 1 not counted, 1 missing; pass rate 50.0 %"
    )
    assert "! INCOMPLETE as well: 1 void, 1 missing" in text
    assert re.search(r"^  lost\[base\]#1  missing$", text, re.MULTILINE)
    assert "fault of  the engine, the image, or the controller" in text


def test_text_tells_of_a_red_trial_what_is_needed(run: VerifiedRun, report: Report, tmp_path: Path) -> None:
    text = render(Format.TEXT, report, run)
    entry = text.partition("  bad[base]#1  failed: verifier_failed\n")[2].partition("\n  other[base]#1")[0]
    assert "why       command 1 of 1 exited 3: make test | tee </log>" in entry
    assert "expected  passed" in entry
    assert "received  failed (verifier_failed)" in entry
    assert "changed   + -rf\\x0a\\x1b[2K\\u202etxt.\\xff|" in entry
    assert "and 2 more" in entry
    assert "stderr of grader command 1, the last" in entry
    assert "only head and tail were kept" in entry
    assert len(re.findall(r"^      \| ", entry, re.MULTILINE)) <= 20
    assert entry.rstrip().endswith(f"boxeval show {tmp_path / 'run'} bad-base-1")


@pytest.mark.contract("S33")
def test_junit_counts(run: VerifiedRun, report: Report) -> None:
    document = minidom.parseString(render(Format.JUNIT, report, run).encode())
    root = document.documentElement
    assert root is not None
    cases = {case.getAttribute("name"): case for case in document.getElementsByTagName("testcase")}
    assert set(cases) == set(report_samples.EXPECTED_KINDS)
    tags = {
        "passed": "",
        "failed as intended": "",
        "failed": "failure",
        "failed otherwise than intended": "failure",
        "passed, but was to fail": "failure",
        "void": "error",
        "missing": "error",
        "not counted": "skipped",
    }
    for name, case in cases.items():
        found = {child.nodeName for child in case.childNodes} & {"failure", "error", "skipped"}
        assert found == {tags[report_samples.EXPECTED_KINDS[name]]} - {""}, name
    for element in (root, *document.getElementsByTagName("testsuite")):
        totals = {
            name: int(element.getAttribute(name)) for name in ("tests", "failures", "errors", "skipped")
        }
        assert totals == {"tests": 8, "failures": 3, "errors": 2, "skipped": 1}
    expect = {
        p.getAttribute("name"): p.getAttribute("value")
        for p in cases["cheat[base]#1"].getElementsByTagName("property")
    }
    assert expect == {"expect": "failed", "outcome": "failed", "class": "forbidden_path"}


@pytest.mark.contract("S33")
def test_markdown_counts(run: VerifiedRun, report: Report) -> None:
    tokens = MarkdownIt("commonmark").enable("table").parse(render(Format.MD, report, run))
    assert [t.content for t in tokens if t.type == "inline"][:2] == [
        "RED",
        "`3 of 5 scored trials did not end as expected`",
    ]
    assert not [t for t in tokens if t.type == "html_block"]
    inline = [child for token in tokens for child in token.children or ()]
    assert {child.type for child in inline} <= {
        "text",
        "code_inline",
        "strong_open",
        "strong_close",
        "softbreak",
    }
    codes = [child.content for child in inline if child.type == "code_inline"]
    for key, kind in report_samples.EXPECTED_KINDS.items():
        if kind != "passed":
            assert key in codes
    headings = [tokens[n + 1].content for n, token in enumerate(tokens) if token.type == "heading_open"]
    assert headings == [
        "RED",
        "Not as expected",
        "Void: no verdict, and not the candidate's doing",
        "Missing: planned, but without a receipt",
        "Failed as intended",
        "Not counted: no checks are declared",
        "Record",
    ]
    rows = sum(token.type == "tr_open" for token in tokens)
    assert rows == 1 + len(report_samples.EXPECTED_KINDS)


@pytest.mark.contract("S33")
def test_json_follows_its_schema(run: VerifiedRun, report: Report) -> None:
    text = render(Format.JSON, report, run)
    assert text.isascii()
    document = json.loads(text)
    jsonschema.Draft202012Validator(report_schema()).validate(document)
    totals = document["totals"]
    assert (totals["trials"], totals["passed"], totals["failed"], totals["void"]) == (8, 2, 3, 1)
    assert (totals["notCounted"], totals["missing"], totals["asExpected"], totals["unexpected"]) == (
        1,
        1,
        2,
        3,
    )
    assert document["tokens"]["total"] is None
    assert document["missing"] == ["lost[base]#1"]
    assert document["complete"] is False


@pytest.mark.contract("S51")
def test_short_report(run: VerifiedRun, report: Report) -> None:
    document = json.loads(render_short(report, run))
    assert list(document) == ["generated_at", "passed", "total", "tokens_in", "tokens_out", "cases"]
    assert (document["passed"], document["total"]) == (COUNTS["passed"] + COUNTS["failed as intended"], 8)
    assert (document["tokens_in"], document["tokens_out"]) == (None, None)
    cases = {case["task_id"]: case for case in document["cases"]}
    assert all(
        list(case) == ["task_id", "passed", "verify_exit", "tokens_in", "tokens_out", "duration_ms", "error"]
        for case in cases.values()
    )
    assert cases["bad"] == {
        "task_id": "bad",
        "passed": False,
        "verify_exit": 3,
        "tokens_in": None,
        "tokens_out": None,
        "duration_ms": 1234,
        "error": "failed: command 1 of 1 exited 3: make test | tee </log>",
    }
    assert (cases["ok"]["passed"], cases["ok"]["error"], cases["ok"]["verify_exit"]) == (True, None, 0)
    assert cases["cheat"]["passed"] is True
    assert cases["lost"]["error"] == "missing: no receipt"


def test_a_good_run_is_good_everywhere(tmp_path: Path) -> None:
    run = report_samples.all_good(tmp_path / "run")
    report = aggregate(run)
    text = render(Format.TEXT, report, run)
    assert text.startswith(
        "GOOD: every scored trial ended as expected\n2 trials: 2 passed; pass rate 100.0 %\n"
    )
    assert "tokens     unknown in, unknown out; measured in 0 of 2 trials" in text
    assert render(Format.MD, report, run).startswith("# GOOD\n")
    root = minidom.parseString(render(Format.JUNIT, report, run).encode()).documentElement
    assert root is not None
    assert [root.getAttribute(n) for n in ("tests", "failures", "errors", "skipped", "time")] == [
        "2",
        "0",
        "0",
        "0",
        "2.468",
    ]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "unknown"),
        (0.0, "0"),
        (1234567, "1,234,567"),
        (1234.5, "1,234.5"),
        (0.25, "0.25"),
        (0.000017, "0.000017"),
        (-0.0000012345, "-0.0000012"),
        (0.001, "0.001"),
    ],
)
def test_no_figure_is_rounded_to_0(value: float | None, told: str) -> None:
    assert number(value) == told


@pytest.mark.contract("V15")
def test_a_sum_of_costs_says_how_many_trials_it_leaves_out(run: VerifiedRun, report: Report) -> None:
    cost = Cost(known_usd=0.25, known_runs=1, unknown_runs=2)
    told = report.model_copy(update={"cost": cost})
    trials = report.tokens.runs
    assert f"0.25 USD; 2 of {trials} trials cost unknown" in render(Format.TEXT, told, run)
    assert json.loads(render(Format.JSON, told, run))["cost"] == {
        "knownUsd": 0.25,
        "knownRuns": 1,
        "unknownRuns": 2,
    }
