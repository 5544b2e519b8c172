"""`verify.checks` in the suite's grammar: what is refused before anything runs (contract G2, G3, G22)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from boxeval.errors import SuiteError
from boxeval.graders.examiner import Examiner
from boxeval.graders.preflight import preflight
from boxeval.receipts.canonical import canonical, read
from boxeval.spec.suite import Suite
from suite_samples import changed, load, problems

PLACE = "tasks[0].verify.checks[0]"


def with_check(grader: str, **configuration: Any) -> str:
    check = {"id": "c", "grader": grader, "configuration": configuration}
    return changed(("tasks.0.verify.checks", [check]))


@pytest.mark.contract("G2", "G3")
@pytest.mark.parametrize(
    ("grader", "configuration", "said"),
    [
        ("boxeval.regex", {}, ".configuration: key `pattern` is missing"),
        (
            "boxeval.regex",
            {"patern": "a", "pattern": "a"},
            ".configuration: unknown key `patern`; did you mean `pattern`?",
        ),
        ("boxeval.regex", {"pattern": 5}, ".configuration.pattern: must be text"),
        ("boxeval.regex", {"pattern": ""}, ".configuration.pattern: must not be empty"),
        (
            "boxeval.regex",
            {"pattern": "a" * 4097},
            ".configuration.pattern: must be at most 4096 characters long",
        ),
        (
            "boxeval.regex",
            {"pattern": "a", "flags": "m"},
            ".configuration.flags: has `m`, which is always on; leave it out",
        ),
        (
            "boxeval.regex",
            {"pattern": "a", "flags": "g"},
            ".configuration.flags: has `g`; flags are `i`, `s` and `u`",
        ),
        ("boxeval.regex", {"pattern": "a", "flags": "ii"}, ".configuration.flags: has a flag twice"),
        ("boxeval.json", {"pointer": "a/b"}, ".configuration.pointer: `a/b` is no JSON Pointer"),
        (
            "boxeval.json",
            {"pointer": "/a~2"},
            ".configuration.pointer: `/a~2` has `~` without `0` or `1` after it",
        ),
        ("boxeval.schema", {"schema": "x"}, ".configuration.schema: must be a mapping"),
        ("boxeval.output", {}, ".configuration: asserts nothing"),
        ("boxeval.output", {"expectJson": 1}, ".configuration.expectJson: needs `jsonPath`"),
        ("boxeval.output", {"containsJson": 1}, ".configuration.containsJson: needs `jsonPath`"),
        (
            "boxeval.output",
            {"validJson": True, "flags": "i"},
            ".configuration.flags: needs `expectRegex` or `notRegex`",
        ),
        ("boxeval.shell", {"run": "x" * 4097}, ".configuration.run: must be at most 4096 characters long"),
        (
            "boxeval.shell",
            {"run": "x", "expectedExitCode": 256},
            ".configuration.expectedExitCode: must be at most 255",
        ),
        (
            "boxeval.shell",
            {"run": "x", "timeoutMs": 120_001},
            ".configuration.timeoutMs: must be at most 120000",
        ),
        ("boxeval.shell", {"run": "x", "timeoutMs": 0}, ".configuration.timeoutMs: must be at least 1"),
        (
            "boxeval.git-head",
            {"kind": "moved"},
            ".configuration.kind: must be one of `changed`, `unchanged`, `base-ancestor`",
        ),
        ("boxeval.git-head", {"kind": "changed"}, ".grader: needs a workspace of kind `git` or `generated`"),
        ("boxeval.state", {"file": "a", "oneOf": [1]}, ".configuration: needs exactly one of `pointer`"),
        ("boxeval.state", {"file": "../a", "pointer": "", "oneOf": [1]}, ".configuration.file:"),
        (
            "boxeval.state",
            {"file": "a", "pointer": "", "oneOf": []},
            ".configuration.oneOf: must not be empty",
        ),
        ("boxeval.outcome", {"file": "a", "atLeast": 1.5}, ".configuration.atLeast: must be at most 1"),
        ("boxeval.event-budget", {"file": "a"}, ".configuration: key `atMost` is missing"),
        (
            "boxeval.regx",
            {"pattern": "a"},
            ": grader `boxeval.regx` is not known; did you mean `boxeval.regex`?",
        ),
        ("sevro.nothing", {}, ": grader `sevro.nothing` is not known"),
    ],
)
def test_a_bad_declaration_is_refused(
    tmp_path: Path, grader: str, configuration: dict[str, Any], said: str
) -> None:
    [found] = problems(tmp_path, with_check(grader, **configuration))
    assert found.startswith(PLACE + said)


@pytest.mark.contract("G3")
@pytest.mark.parametrize(
    ("checks", "said"),
    [
        ([{"id": "a"}], "tasks[0].verify.checks[0]: key `grader` is missing"),
        ([5], "tasks[0].verify.checks[0]: must be a mapping, not `5`"),
        (
            [{"id": "a", "grader": "boxeval.regex", "configuration": {"pattern": "x"}}] * 2,
            "tasks[0].verify.checks[1].id: `a` is already the id of checks[0]",
        ),
        (
            [{"id": f"c{n}", "grader": "boxeval.json", "configuration": {}} for n in range(129)],
            "tasks[0].verify.checks: has more than 128 items",
        ),
    ],
)
def test_bad_lists(tmp_path: Path, checks: list[Any], said: str) -> None:
    assert problems(tmp_path, changed(("tasks.0.verify.checks", checks))) == [said]


@pytest.mark.contract("G73")
def test_128_checks_are_taken(tmp_path: Path) -> None:
    checks = [{"id": f"c{n}", "grader": "boxeval.json", "configuration": {}} for n in range(128)]
    loaded = load(tmp_path, changed(("tasks.0.verify.checks", checks)))
    assert len(loaded.suite.tasks[0].verify.checks) == 128


@pytest.mark.contract("V38")
def test_scoring_needs_checks_and_a_threshold_needs_weights(tmp_path: Path) -> None:
    assert problems(tmp_path, changed(("tasks.0.verify.scoring", "weighted"))) == [
        "tasks[0].verify.scoring: `weighted` needs `checks`"
    ]
    assert problems(tmp_path, changed(("tasks.0.verify.threshold", 0.5))) == [
        "tasks[0].verify.threshold: needs `scoring: weighted`"
    ]


def test_required_evidence_is_known(tmp_path: Path) -> None:
    [found] = problems(tmp_path, changed(("tasks.0.requiredEvidence", ["boxeval.mesage"])))
    assert found.startswith(
        "tasks[0].requiredEvidence[0]: there is no evidence `boxeval.mesage`; did you mean"
    )


@pytest.mark.contract("G2", "G8", "G12")
def test_patterns_and_schemas_are_compiled_before_a_run(tmp_path: Path, examiner: Examiner) -> None:
    checks = [
        {"id": "a", "grader": "boxeval.regex", "configuration": {"pattern": "("}},
        {"id": "b", "grader": "boxeval.schema", "configuration": {"schema": {"$ref": "other.json"}}},
        {"id": "c", "grader": "boxeval.shell", "configuration": {"run": "true", "notRegex": "["}},
        {"id": "d", "grader": "boxeval.json", "configuration": {"contains": {"x": {"$regex": "*"}}}},
        {"id": "e", "grader": "boxeval.regex", "configuration": {"pattern": "fine"}},
        {"id": "f", "grader": "boxeval.schema", "configuration": {"schema": {"format": "uri"}}},
    ]
    loaded = load(tmp_path, changed(("tasks.0.verify.checks", checks)))
    with pytest.raises(SuiteError) as caught:
        preflight(loaded, examiner)
    assert caught.value.exit_code == 2
    assert [problem.path.removeprefix("tasks[0].verify.") for problem in caught.value.problems] == [
        "checks[0].configuration.pattern",
        'checks[1].configuration.schema["$ref"]',
        "checks[2].configuration.notRegex",
        "checks[3].configuration.contains",
    ]
    assert all(problem.line > 1 for problem in caught.value.problems)
    loaded = load(tmp_path, changed(("tasks.0.verify.checks", checks[4:])))
    [warning] = preflight(loaded, examiner)
    assert (warning.path, warning.message) == (
        "tasks[0].verify.checks[1].configuration.schema.format",
        "format 'uri' is not enforced",
    )


def test_what_was_set_is_what_is_written_and_read(tmp_path: Path) -> None:
    for configuration in ({}, {"equals": None}, {"equals": [1.0, {"$regex": "a"}], "exactDocument": False}):
        suite = load(tmp_path, with_check("sevro.json", **configuration)).suite
        check = suite.tasks[0].verify.checks[0]
        assert check.grader == "boxeval.json"
        assert check.configuration.model_dump(mode="json", by_alias=True) == configuration
        again = read(Suite, canonical(suite))
        assert canonical(again) == canonical(suite)
        assert again.tasks[0].verify.checks[0].configuration.has("equals") == ("equals" in configuration)
