"""Checks that a model judges: one real run, a scripted judge behind the gateway, documents of a hostile tree."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from boxeval.receipts.verify import VerifiedRun
from boxeval.spec.graded import CheckSeen
from boxeval.spec.trial import Trial
from engine_runs import forget, run, settings_in, write_suite

pytestmark = pytest.mark.engine


def says(**verdicts: str) -> str:
    outcomes = [{"id": name, "verdict": verdict, "reason": "because"} for name, verdict in verdicts.items()]
    return json.dumps(json.dumps({"outcomes": outcomes}))


def semantic(name: str, path: str | None = None) -> str:
    more = f", artifactPath: '{path}'" if path else ""
    return f"{{id: {name}, grader: sevro.semantic, configuration: {{proposition: 'It is {name}.'{more}}}}}"


def model(name: str) -> str:
    return f"{{id: {name}, grader: boxeval.model, configuration: {{dimension: {name}, rubric: 'kind is 1'}}}}"


def task(name: str, command: str, judge: str, *checks: str, runner: str = "") -> str:
    return (
        f"  - id: {name}\n    workspace: {{kind: inline, files: {{docs/keep: x}}}}\n"
        f"    runner: {{kind: external-command, command: {json.dumps(command)}{runner}}}\n"
        f"    verify: {{judge: {judge}, checks: [{', '.join(checks)}]}}\n"
    )


MODELS = f"""
models:
  agrees: {{script: {{turns: [{{text: {says(a="pass")}}}], usage: {{input: 7, output: 3, costUsd: 0.5}}}}}}
  mixed:
    script:
      turns:
        - {{text: {says(a="pass", b="fail")}}}
        - {{text: {says(doc="pass")}}}
        - {{text: '{{"score": 0.7, "reason": "fine"}}'}}
        - {{text: 'very good'}}
  babbles: {{script: {{turns: [{{text: 'All good!'}}]}}}}
"""
TASKS = (
    task("passes", "echo hello", "agrees", semantic("a")),
    task(
        "mixed",
        "echo hello; echo text > docs/report-1.md",
        "mixed",
        *(semantic("a"), semantic("doc", "docs/report-*.md"), semantic("b"), model("tone"), model("style")),
    ),
    task("babbles", "echo hello", "babbles", semantic("a")),
    task("silent", "true", "agrees", semantic("a")),
    task("missing", "echo hi", "agrees", semantic("a", "docs/none.md")),
    task("two", "echo hi; touch docs/a.md docs/b.md", "agrees", semantic("a", "docs/*.md")),
    task("link", "echo hi; ln -s /etc/passwd docs/a.md", "agrees", semantic("a", "docs/a.md")),
    task("folder-link", "echo hi; ln -s /etc etc", "agrees", semantic("a", "etc/passwd")),
    task("fits", "echo hi; head -c 65536 /dev/zero > docs/a.md", "agrees", semantic("a", "docs/a.md")),
    task("large", "echo hi; head -c 65537 /dev/zero > docs/a.md", "agrees", semantic("a", "docs/a.md")),
)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[VerifiedRun]:
    place = tmp_path_factory.mktemp("judged")
    settings = settings_in(place / "home", cache)
    _, verified = run(write_suite(place, MODELS + "tasks:\n" + "".join(TASKS)), settings)
    yield verified
    forget(settings)


def trial(verified: VerifiedRun, name: str) -> Trial:
    return next(one for one in verified.trials if one.task == name)


def only_check(verified: VerifiedRun, name: str) -> CheckSeen:
    (check,) = trial(verified, name).observations.checks
    return check


@pytest.mark.contract("G24", "G25")
def test_a_proposition_is_judged_by_its_own_route(judged: VerifiedRun) -> None:
    found = trial(judged, "passes")
    assert (found.outcome.task.value, found.outcome.weight.value) == ("passed", "scored")
    traffic = found.observations.judge_traffic
    assert traffic is not None
    assert (traffic.requests, traffic.input_tokens, traffic.output_tokens, traffic.cost_usd) == (1, 7, 3, 0.5)
    assert found.observations.traffic is None
    assert found.metrics["tokens.measured"] is not True
    (exchange,) = found.observations.judged
    assert exchange.document is not None
    assert judged.blobs.get(exchange.document.sha256) == b"hello\n"


@pytest.mark.contract("G27", "G30", "V41")
def test_each_check_has_its_own_outcome_and_a_fail_fails_the_task(judged: VerifiedRun) -> None:
    found = trial(judged, "mixed")
    statuses = {check.id: (check.status.value, check.score) for check in found.observations.checks}
    assert statuses == {
        "a": ("passed", None),
        "doc": ("passed", None),
        "b": ("failed", None),
        "tone": ("passed", 0.7),
        "style": ("failed", 0.0),
    }
    assert (found.outcome.task.value, found.outcome.grading.value) == ("failed", "completed")
    assert [(one.source, one.check) for one in found.observations.judged] == [
        ("message", None),
        ("docs/report-*.md", None),
        ("message", "tone"),
        ("message", "style"),
    ]
    (doc,) = next(one for one in found.observations.checks if one.id == "doc").evidence
    assert (doc.name, judged.blobs.get(doc.sha256)) == ("docs/report-1.md", b"text\n")


@pytest.mark.contract("G28")
def test_a_malformed_answer_is_a_grading_error(judged: VerifiedRun) -> None:
    outcome = trial(judged, "babbles").outcome
    assert (outcome.grading.value, outcome.task.value, outcome.weight.value) == (
        "error",
        "not_assessed",
        "void",
    )


@pytest.mark.contract("G28")
def test_without_a_message_the_judge_is_not_called(judged: VerifiedRun) -> None:
    found = trial(judged, "silent")
    assert (found.outcome.grading.value, found.outcome.weight.value) == ("unavailable", "void")
    assert (found.observations.judged, found.observations.judge_traffic) == ((), None)


@pytest.mark.contract("G29")
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("missing", "there is no such file"),
        ("two", "matches 2 files, not one"),
        ("link", "cannot be reached by plain directories"),
        ("folder-link", "cannot be reached by plain directories"),
        ("large", "has 65537 bytes; at most 65536 are read"),
    ],
)
def test_a_document_that_is_not_one_small_plain_file_is_a_grading_error(
    judged: VerifiedRun, name: str, why: str
) -> None:
    found = only_check(judged, name)
    assert found.status.value == "error"
    assert why in str(found.reason)
    assert trial(judged, name).observations.judge_traffic is None


@pytest.mark.contract("G29")
def test_a_document_of_64_kib_is_judged(judged: VerifiedRun) -> None:
    assert only_check(judged, "fits").status.value == "passed"
