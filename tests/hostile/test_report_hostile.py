"""What a candidate prints or names its files breaks no report and draws nothing on a terminal."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from xml.parsers import expat

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import report_samples
from boxeval.reports import cases, junit, md
from boxeval.reports.escape import escape
from boxeval.reports.formats import Format, render
from boxeval.reports.live import Lines
from boxeval.reports.show import render_run, render_trial
from boxeval.reports.text import render_verified
from boxeval.spec.case_result import CaseOutcome, CaseResult, CaseTrial, CheckLine, Diagnostic
from boxeval.verdicts.aggregate import aggregate

VISIBLE = re.compile(
    r"[^\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufffe\uffff]*"
)


def assert_visible(text: str) -> None:
    """Nothing but visible characters and newlines, in valid UTF-8."""
    assert VISIBLE.fullmatch(text), re.sub(VISIBLE, "", text)
    text.encode("utf-8")


@pytest.mark.contract("S33")
@pytest.mark.parametrize("form", list(Format))
def test_every_format_is_visible_utf8(form: Format, tmp_path: Path) -> None:
    run = report_samples.every_kind(tmp_path / "run")
    assert_visible(render(form, aggregate(run), run))


def test_detailed_views_are_visible(tmp_path: Path) -> None:
    run = report_samples.every_kind(tmp_path / "run")
    assert_visible(render_run(run, aggregate(run)))
    assert_visible(render_verified(run))
    for trial in run.trials:
        assert_visible(render_trial(run, trial))


def test_results_of_cases_are_visible() -> None:
    """Known failures G1 and G2, in what `boxeval run --case-file` prints."""
    forged = "ok\x1b[2K\x1b[1A\rpassed\x1b]52;c;eA==\x07 \u202edessap\ud800\ufffe\0\n  trial 2: passed"
    check = CheckLine(id="c", grader="boxeval.regex", status="failed", reason=forged)
    states = {"execution": "completed", "grading": "completed", "task": "failed"}
    trial = CaseTrial.model_validate(
        {
            **states,
            **dict.fromkeys(("duration_ms", "input_tokens", "output_tokens", "cost_usd")),
            "trial": 1,
            "trial_id": "t",
            "detail": forged,
            "checks": (check,),
        }
    )
    outcome = {"case_id": "a", "identity": "0" * 64, "dimensions": {}, "passed": 0, "planned": 1}
    figures = dict.fromkeys(("pass_rate", "duration_ms", "input_tokens", "output_tokens", "cost_usd"))
    case = CaseOutcome.model_validate({**states, **outcome, **figures, "trials": (trial,)})
    broken = Diagnostic(code="invalid", message=forged)
    for more in ({"cases": (case,), "run_id": forged}, {"diagnostic": broken}):
        told = cases.render([CaseResult.model_validate({**states, "exit_code": 1, **more})])
        assert_visible(told)
        assert "  trial 2: passed" not in told.splitlines()


def test_hostile_names_stay_distinguishable(tmp_path: Path) -> None:
    run = report_samples.every_kind(tmp_path / "run")
    bad = next(trial for trial in run.trials if trial.task == "bad")
    lines = [line.strip() for line in render_trial(run, bad).splitlines()]
    names = [line[2:].partition(", mode")[0] for line in lines if line.startswith("+ ")]
    assert names[1:5] == ["a\\x0ab", "a\\nb", "a\\\\x0ab", "\\xff\\xfe"]
    assert names[5] == "e" * 255
    assert len(set(names)) == 7


def test_no_line_of_the_text_report_can_be_forged(tmp_path: Path) -> None:
    run = report_samples.every_kind(tmp_path / "run")
    lines = render(Format.TEXT, aggregate(run), run).splitlines()
    assert [line for line in lines if "GOOD" in line and not line.startswith("      | ")] == []


@pytest.mark.contract("S33")
def test_junit_is_strict_xml_and_keeps_the_text(tmp_path: Path) -> None:
    run = report_samples.every_kind(tmp_path / "run")
    xml = render(Format.JUNIT, aggregate(run), run)
    names: list[str] = []
    text: list[str] = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda name, _: names.append(name)
    parser.CharacterDataHandler = text.append
    parser.Parse(xml.encode("utf-8"), True)
    assert names.count("failure") == 3
    assert "</testcase></testsuite>" in "".join(text)
    assert "\\x1b[2J\\x1b[H" in "".join(text)
    assert "\\x00\\x0b]]><failure/>" in "".join(text)
    assert "\\xff\\xfe\\xed\\xa0\\x80\\ufffe" in "".join(text)


XML_1_0 = re.compile("[\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*")


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=40))
def test_any_text_as_junit_message(text: str) -> None:
    from xml.etree import ElementTree as Xml

    case = Xml.Element("testcase")
    junit._verdict(case, "failure", text, text, "\n".join(escape(line) for line in text.split("\n")))
    xml = Xml.tostring(case, encoding="unicode")
    assert XML_1_0.fullmatch(xml)
    expat.ParserCreate().Parse(xml.encode(), True)


@given(
    st.text(
        alphabet=st.one_of(st.sampled_from("`|\\ <>&*_[]()!\n"), st.characters(exclude_categories=())),
        max_size=30,
    )
)
def test_any_text_as_markdown_code(text: str) -> None:
    parser = MarkdownIt("commonmark").enable("table")
    (inline,) = [t for t in parser.parse(f"- x: {md.code(text)}") if t.type == "inline"]
    assert [child.type for child in inline.children or ()] == ["text", "code_inline"]
    tokens = parser.parse("\n".join(md._table(("a", "b"), ((text or "x", "z"),))))
    cells = [tokens[n + 1] for n, token in enumerate(tokens) if token.type == "td_open"]
    assert len(cells) == 2
    assert [child.type for child in cells[0].children or ()] == ["code_inline"]
    assert cells[1].content == "`z`"


def test_progress_lines_are_visible() -> None:
    stream = io.StringIO()
    with Lines(stream) as lines:
        lines.note("pulling \x1b[2Jimage\rdone\u202e")
    assert stream.getvalue() == "pulling \\x1b[2Jimage\\x0ddone\\u202e\n"


def test_json_holds_no_raw_control(tmp_path: Path) -> None:
    run = report_samples.every_kind(tmp_path / "run")
    text = render(Format.JSON, aggregate(run), run)
    assert text.isascii()
    names = [e["name"] for trial in json.loads(text)["trials"] for e in trial["evidence"]]
    assert f"file {report_samples.HOSTILE_NAME}" in names


def test_a_flood_without_newline_is_cut(tmp_path: Path) -> None:
    import run_samples as samples
    from boxeval.receipts.ledger import Ledger
    from boxeval.receipts.trust import Trust
    from boxeval.receipts.verify import verify

    planned = samples.plan(samples.task("ok"))
    ledger = Ledger.create(tmp_path / "run", planned, report_samples.KEY, now=lambda: samples.NOON)
    flood = report_samples.kept(ledger, "\u20ac".encode() * 100_000)
    ledger.append(
        samples.trial(planned.tasks[0], samples.seen(grader=samples.box(samples.command(1, stderr=flood))))
    )
    ledger.close()
    run = verify(tmp_path / "run", Trust((report_samples.KEY.trusted(),)))
    text = render(Format.TEXT, aggregate(run), run)
    assert max(map(len, text.splitlines())) < 300
    assert "stderr of grader command 1, the last 1 lines:" in text
