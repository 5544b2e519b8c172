"""The report as JUnit XML for CI systems: valid XML 1.0 whatever bytes a candidate printed.

A failure is a scored trial that did not end as expected, an error has no verdict (void or missing), skipped
is not counted. A trial that failed as intended is a passing testcase with the property `expect`.
"""

from __future__ import annotations

from xml.etree import ElementTree as Xml

from boxeval.receipts.verify import VerifiedRun
from boxeval.reports.escape import escape
from boxeval.reports.story import Entry, tell
from boxeval.reports.words import Kind, attempt_words, cause, is_incomplete, kind_of_line
from boxeval.spec.report import Report, TrialLine
from boxeval.verdicts.aggregate import conclusion

_TAGS = {Kind.VOID: "error", Kind.NOT_COUNTED: "skipped"}


def render(report: Report, run: VerifiedRun) -> str:
    """One testsuite a target, one testcase a planned trial."""
    entries = {entry.key: entry for section in tell(report, run).sections for entry in section.entries}
    root = Xml.Element("testsuites", {"name": escape(report.suite.id)})
    targets = dict.fromkeys(trial.target for trial in run.plan.trials)
    for target in targets:
        suite = Xml.SubElement(root, "testsuite", {"name": escape(f"{report.suite.id}[{target}]")})
        suite.set("timestamp", report.opened_at)
        _properties(suite, _run_properties(report))
        for line in report.trials:
            if line.target == target:
                _case(suite, report, line, entries.get(line.key))
        for trial in run.plan.trials:
            if trial.target == target and trial.key in report.missing:
                case = _testcase(suite, report, trial.key, trial.target, 0)
                _verdict(case, "error", "missing", "planned, but without a receipt", "")
        _count(suite)
    _count(root)
    Xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _run_properties(report: Report) -> dict[str, str]:
    code, reason = conclusion(report)
    return {
        "run": report.run_id,
        "suite.sha256": report.suite.sha256,
        "conclusion": reason,
        "exitCode": str(code),
        "incomplete": str(is_incomplete(report)).lower(),
        "hermetic": str(report.hermetic).lower(),
        "key": report.keyid,
    }


def _case(suite: Xml.Element, report: Report, line: TrialLine, entry: Entry | None) -> None:
    case = _testcase(suite, report, line.key, line.target, line.wall_ms)
    kind = kind_of_line(line)
    properties = {f"attempt {one.attempt}": attempt_words(one) for one in line.others}
    good = kind in {Kind.PASSED, Kind.AS_INTENDED}
    if good and line.expect:
        outcome = line.outcome
        properties |= {"expect": line.expect, "outcome": outcome.task.value, "class": cause(outcome)}
    if properties:
        _properties(case, properties)
    if good:
        return
    text = "\n".join(_words(entry)) if entry else ""
    _verdict(
        case,
        _TAGS.get(kind, "failure"),
        cause(line.outcome) or str(kind),
        line.outcome.detail or str(kind),
        text,
    )


def _words(entry: Entry) -> list[str]:
    lines = [escape(entry.verdict), *(f"{name}: {escape(value)}" for name, value in entry.facts)]
    for excerpt in entry.excerpts:
        lines += [f"{excerpt.caption}:", *excerpt.lines]
    return [*lines, escape(entry.look)] if entry.look else lines


def _testcase(suite: Xml.Element, report: Report, key: str, target: str, wall_ms: int) -> Xml.Element:
    place = {
        "name": escape(key),
        "classname": escape(f"{report.suite.id}.{target}"),
        "time": f"{wall_ms / 1000:.3f}",
    }
    return Xml.SubElement(suite, "testcase", place)


def _verdict(case: Xml.Element, tag: str, kind: str, message: str, text: str) -> None:
    element = Xml.SubElement(case, tag, {"message": escape(message)})
    if tag != "skipped":
        element.set("type", escape(kind))
    if text:
        element.text = text


def _properties(parent: Xml.Element, values: dict[str, str]) -> None:
    box = Xml.SubElement(parent, "properties")
    for name, value in values.items():
        if value:
            Xml.SubElement(box, "property", {"name": name, "value": escape(value)})


def _count(parent: Xml.Element) -> None:
    cases = list(parent.iter("testcase"))
    parent.set("tests", str(len(cases)))
    for plural, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        parent.set(plural, str(sum(case.find(tag) is not None for case in cases)))
    parent.set("time", f"{sum(float(case.get('time', '0')) for case in cases):.3f}")
