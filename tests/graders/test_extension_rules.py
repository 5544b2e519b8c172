"""What an extension may claim: capabilities, ids, evidence and files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from boxeval.graders.extension_checks import checks_of
from boxeval.graders.extension_exchange import ProtocolFault
from boxeval.graders.extension_rules import (
    ARTIFACT_BYTES,
    check_cases,
    check_evaluation,
    check_prepared,
    negotiate,
)
from boxeval.spec.extension import (
    ArtifactRef,
    BuiltinCheck,
    DeclaredCheck,
    PrepareResult,
    ResolveResult,
)
from boxeval.spec.extension_use import ExtensionUse
from extension_samples import ASKED, WHO, artifact, check, described, evaluated, evaluation

USE = ExtensionUse(command=("true",))
MESSAGE = "boxeval.observation.final-message"
USAGE = "boxeval.observation.usage"


def prepared(*artifacts: dict[str, Any], instruments: tuple[str, ...] = ()) -> PrepareResult:
    return PrepareResult.model_validate_json(
        json.dumps(
            {
                "artifacts": artifacts,
                "requestedInstrumentation": [{"id": name, "configuration": {}} for name in instruments],
                "extensionData": {},
            }
        )
    )


@pytest.mark.contract("G66", "G7")
def test_capabilities_are_negotiated() -> None:
    told = described(
        requiredCapabilities=["boxeval.host.exec"],
        optionalCapabilities=["example.telepathy", "boxeval.workspace.files"],
    )
    both = negotiate("boxeval", ASKED, told, USE)
    assert both.capabilities == ("boxeval.host.exec", "boxeval.workspace.files")
    assert (both.id, both.version, both.protocol) == ("example.words", "1", "boxeval.extension.v1")
    with pytest.raises(ProtocolFault, match=r"requires example\.telepathy"):
        negotiate("boxeval", ASKED, described(requiredCapabilities=["example.telepathy"]), USE)


@pytest.mark.contract("G65")
def test_a_protocol_that_it_does_not_speak_is_not_guessed() -> None:
    later = described(protocols=["boxeval.extension.v2"])
    with pytest.raises(ProtocolFault, match=r"does not speak boxeval\.extension\.v1"):
        negotiate("boxeval", ASKED, later, USE)
    with pytest.raises(ProtocolFault, match=r"does not speak sevro\.extension\.v1"):
        negotiate("sevro", ASKED, described(), USE)


@pytest.mark.contract("G67")
def test_a_verdict_policy_must_be_offered() -> None:
    use = USE.model_copy(update={"verdict_policy": "example.words.strict"})
    with pytest.raises(ProtocolFault, match=r"no verdict policy example\.words\.strict \(it has: none\)"):
        negotiate("boxeval", ASKED, described(), use)
    offered = described(taskVerdictPolicies=["example.words.strict"])
    assert negotiate("boxeval", ASKED, offered, use).verdict_policies == ("example.words.strict",)


@pytest.mark.contract("G66", "G7")
def test_a_pass_needs_complete_evidence() -> None:
    asked = evaluation(
        builtin_checks=(
            BuiltinCheck(id="tests", status="failed", evidence_refs=()),
            BuiltinCheck(id="lost", status="unavailable", evidence_refs=()),
        ),
        artifacts=(ArtifactRef(id="patch", path="file:///evidence/patch", sha256="0" * 64),),
    )
    for good in (MESSAGE, "tests", "patch"):
        check_evaluation(asked, evaluated(check("passed", good)), WHO)
    for cites, reason in (
        ((), "passed without evidence"),
        ((USAGE,), "is not complete"),
        ((MESSAGE, USAGE), "is not complete"),
        (("lost",), "is not complete"),
        (("made.up",), "was not given"),
        (("../../etc/passwd",), "was not given"),
        (("file:///etc/passwd",), "was not given"),
    ):
        with pytest.raises(ProtocolFault, match=reason):
            check_evaluation(asked, evaluated(check("passed", *cites)), WHO)
    check_evaluation(
        asked, evaluated(check("failed"), check("unavailable", USAGE, name="example.words.u")), WHO
    )
    with pytest.raises(ProtocolFault, match="was not given"):
        check_evaluation(asked, evaluated(check("failed", "made.up")), WHO)


def test_outcomes_obey_the_same_rules_as_checks() -> None:
    for outcome, reason in (
        (check("passed"), "passed without evidence"),
        (check("failed", name="other.words"), r"does not begin with example\.words"),
    ):
        with pytest.raises(ProtocolFault, match=reason):
            check_evaluation(evaluation(), evaluated(domainOutcomes=[outcome]), WHO)


@pytest.mark.contract("G66")
def test_ids_are_its_own_and_unique() -> None:
    for name in ("boxeval.regex", "example.wordsmith", "example.words"):
        with pytest.raises(ProtocolFault, match="does not begin with"):
            check_evaluation(evaluation(), evaluated(check("failed", name=name)), WHO)
    with pytest.raises(ProtocolFault, match="is there twice"):
        check_evaluation(evaluation(), evaluated(check("failed"), check("passed", MESSAGE)), WHO)


@pytest.mark.contract("G66")
def test_a_check_that_the_case_declares_has_its_own_id_and_needs_its_grader() -> None:
    short = check("passed", MESSAGE, name="short")
    with pytest.raises(ProtocolFault, match="does not begin with"):
        check_evaluation(evaluation(), evaluated(short), WHO)
    check_evaluation(evaluation(), evaluated(short), WHO, ("short",))
    declared = DeclaredCheck(id="short", grader="example.words.short", configuration={})
    use = ExtensionUse(command=("x",), checks=(declared,), expects=("example.words.count",))
    with pytest.raises(ProtocolFault, match=r"no grader example\.words\.short"):
        negotiate("boxeval", ASKED, described(), use)
    negotiate("boxeval", ASKED, described(graders=["example.words.short"]), use)
    found = checks_of(use, WHO, evaluation(), evaluated(short))
    assert [(one.id, one.status) for one in found] == [
        ("short", "passed"),
        ("example.words.count", "unavailable"),
    ]


@pytest.mark.contract("G67")
def test_a_recommendation_comes_with_a_policy_and_only_then() -> None:
    selected = evaluation(selected_task_verdict_policy="example.words.strict")
    good = check("passed", MESSAGE)
    with pytest.raises(ProtocolFault, match="no verdict policy was selected"):
        check_evaluation(evaluation(), evaluated(good, taskVerdictRecommendation="passed"), WHO)
    with pytest.raises(ProtocolFault, match="recommends no verdict"):
        check_evaluation(selected, evaluated(good), WHO)
    with pytest.raises(ProtocolFault, match="none of its checks passed"):
        check_evaluation(selected, evaluated(check("failed"), taskVerdictRecommendation="passed"), WHO)
    check_evaluation(selected, evaluated(good, taskVerdictRecommendation="passed"), WHO)
    check_evaluation(selected, evaluated(taskVerdictRecommendation="failed"), WHO)


@pytest.mark.contract("G65")
@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../up",
        "a/../../up",
        "a/..",
        ".git/hooks/pre-commit",
        "sub/.GIT/config",
        "a/",
        ".",
        "a\x00b",
        "a\\..\\b",
        "a\x1b[2J",
        "a\nb",
        "x" * 256,
        "/".join(["d"] * 200),
        "file:///etc/passwd/..",
    ],
)
def test_an_artifact_stays_in_the_workspace(path: str) -> None:
    with pytest.raises(ProtocolFault, match="prepare: artifact"):
        check_prepared(prepared(artifact(path)))


def test_prepared_files_are_what_they_say() -> None:
    files = check_prepared(prepared(artifact("a/./b.txt", b"one"), artifact("run", b"two", executable=True)))
    assert files == {"a/b.txt": (0o644, b"one"), "run": (0o755, b"two")}
    for bad, reason in (
        (artifact("a", sha256="0" * 64), "another SHA-256"),
        (artifact("a", contentBase64="%%%"), "not base64"),
        (artifact("a", contentBase64="eA"), "not base64"),
    ):
        with pytest.raises(ProtocolFault, match=reason):
            check_prepared(prepared(bad))
    with pytest.raises(ProtocolFault, match="another one has the path"):
        check_prepared(prepared(artifact("a"), {**artifact("./a"), "id": "b"}))
    with pytest.raises(ProtocolFault, match="is there twice"):
        check_prepared(prepared(artifact("a"), {**artifact("b"), "id": "a"}))
    # As a fixture this could not be made, which is the suite's fault elsewhere, and would end the run.
    with pytest.raises(ProtocolFault, match="'a/b' lies below `a`, which is a file"):
        check_prepared(prepared(artifact("a"), artifact("a/b")))


@pytest.mark.contract("G73")
def test_prepared_files_are_bounded() -> None:
    half = b"x" * (ARTIFACT_BYTES // 2)
    assert len(check_prepared(prepared(artifact("a", half), artifact("b", half)))) == 2
    with pytest.raises(ProtocolFault, match="more than 8388608 bytes"):
        check_prepared(prepared(artifact("a", half), artifact("b", half), artifact("c")))


@pytest.mark.contract("G66", "G60")
def test_no_instrumentation_is_to_be_had() -> None:
    with pytest.raises(ProtocolFault, match=r"instrumentation example\.words\.trace"):
        check_prepared(prepared(instruments=("example.words.trace",)))


def test_cases_are_unique_and_those_that_were_asked_for() -> None:
    def resolved(*ids: str) -> ResolveResult:
        cases = [
            {
                "id": name,
                "prompt": "Do it.",
                "fixture": {"kind": "inline", "files": {}},
                "checks": [],
                "requiredEvidence": [],
                "extensionData": {},
            }
            for name in ids
        ]
        return ResolveResult.model_validate_json(json.dumps({"cases": cases}))

    assert [case.id for case in check_cases(resolved("a", "b"), None)] == ["a", "b"]
    assert [case.id for case in check_cases(resolved("a", "b"), ["b"])] == ["b"]
    with pytest.raises(ProtocolFault, match="'a' is there twice"):
        check_cases(resolved("a", "a"), None)
    with pytest.raises(ProtocolFault, match="no case 'c'"):
        check_cases(resolved("a"), ["c"])
