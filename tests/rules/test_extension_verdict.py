"""What an extension's checks and recommendation come to."""

from __future__ import annotations

from typing import Any

import pytest

from boxeval.graders.extension_again import extension_fault
from boxeval.graders.extension_checks import judged
from boxeval.graders.extension_exchange import encode, make_request
from boxeval.receipts.blobs import BlobStore
from boxeval.rules.check_consistency import checks_fault
from boxeval.rules.identity import dimensions
from boxeval.rules.selection import without_replaced
from boxeval.rules.verdict import decide
from boxeval.spec.extension import (
    Method,
)
from boxeval.spec.extension_use import ExchangeSeen, ExtensionSeen, ExtensionUse
from boxeval.spec.graded import CheckSeen, CheckStatus
from boxeval.spec.outcome import FailureClass, Outcome
from boxeval.spec.plan import PlannedImage
from boxeval.spec.suite import Verify
from boxeval.spec.trial import Collected, Observations, SetupFault
from extension_samples import (
    ASKED,
    DESCRIBED,
    WHO,
    as_json,
    box,
    check,
    evaluated,
    evaluation,
)
from run_samples import box as settled
from run_samples import capture, command, killed, plan, sha, task, timed_out

MESSAGE = "boxeval.message"
USE = ExtensionUse(command=("true",))
POLICY = USE.model_copy(update={"verdict_policy": "example.words.strict"})


def found(*statuses: str, limit: str | None = None, **more: Any) -> ExtensionSeen:
    checks = [
        CheckSeen.model_validate(
            {"id": f"example.words.c{n}", "grader": "example.words", "status": status, "limit": limit}
        )
        for n, status in enumerate(statuses, start=1)
    ]
    return ExtensionSeen(sources=sha("ext"), checks=tuple(checks), **more)


def outcome(
    extension: ExtensionSeen | None, use: ExtensionUse = USE, grader_exit: int | None = None
) -> Outcome:
    """Of a trial whose candidate ended well; with `grader_exit` it has a command too, which exited so."""
    commands = () if grader_exit is None else ("true",)
    planned = task(verify=Verify(commands=commands, extension=use), extension_sources=sha("ext"))
    seen = Observations(
        agent=settled(),
        collected=Collected(),
        grader=None if grader_exit is None else settled(command(grader_exit)),
        extension=extension,
    )
    return decide(planned, seen, {})


def row(result: Outcome) -> tuple[str, str, str, str]:
    return result.grading, result.task, str(result.failure_class), result.weight


@pytest.mark.contract("G5", "G62", "G66")
@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (["passed"], ("completed", "passed", "None", "scored")),
        (["passed", "failed"], ("completed", "failed", "verifier_failed", "scored")),
        (["passed", "unavailable"], ("unavailable", "not_assessed", "evidence_missing", "void")),
        (["failed", "unavailable"], ("unavailable", "failed", "verifier_failed", "scored")),
        (["error"], ("error", "not_assessed", "grader_error", "void")),
        ([], ("unavailable", "not_assessed", "evidence_missing", "void")),
    ],
)
def test_checks_of_an_extension_count_like_all_others(statuses: list[str], expected: tuple[str, ...]) -> None:
    assert row(outcome(found(*statuses))) == expected


@pytest.mark.contract("G7")
def test_an_extension_that_left_no_record_is_no_pass() -> None:
    assert row(outcome(None)) == ("unavailable", "not_assessed", "evidence_missing", "void")
    assert row(outcome(None, POLICY)) == ("unavailable", "not_assessed", "evidence_missing", "void")


@pytest.mark.contract("G64", "G65")
def test_too_slow_is_the_graders_time_limit() -> None:
    late = outcome(found("error", limit="time"))
    assert (late.failure_class, late.limit, late.grading) == (FailureClass.TIMEOUT, "grader", "error")


@pytest.mark.contract("G67")
@pytest.mark.parametrize(
    ("statuses", "recommendation", "grader_exit", "expected"),
    [
        # The policy decides in the place of the checks and of the commands.
        (["passed"], "passed", None, "passed"),
        (["passed", "failed"], "passed", None, "passed"),
        (["passed"], "passed", 1, "passed"),
        (["passed"], "failed", 0, "failed"),
        ([], "failed", None, "failed"),
        (["passed"], "not_assessed", None, "not_assessed"),
        # It hides nothing that keeps a trial from being assessed.
        (["passed", "unavailable"], "passed", None, "not_assessed"),
        (["error"], None, None, "not_assessed"),
        (["passed"], None, None, "not_assessed"),
    ],
)
def test_a_selected_policy_decides(
    statuses: list[str], recommendation: Any, grader_exit: int | None, expected: str
) -> None:
    seen = found(*statuses, recommendation=recommendation)
    assert outcome(seen, POLICY, grader_exit).task == expected


def test_a_policy_hides_no_grader_that_could_not_work() -> None:
    planned = task(verify=Verify(commands=("true",), extension=POLICY), extension_sources=sha("ext"))
    seen = Observations(
        agent=settled(),
        collected=Collected(),
        grader=settled(timed_out()),
        extension=found("passed", recommendation="passed"),
    )
    assert row(decide(planned, seen, {})) == ("error", "not_assessed", "timeout", "void")


@pytest.mark.contract("G67")
def test_without_the_policy_a_failed_command_fails_beside_an_extension_that_passes() -> None:
    assert outcome(found("passed"), USE, grader_exit=1).task == "failed"
    assert outcome(found("passed"), USE, grader_exit=0).task == "passed"


@pytest.mark.contract("G67")
def test_replaced_graders_are_not_planned_and_nothing_else_changes() -> None:
    declared = Verify.model_validate_json(
        as_json(
            {
                "commands": ["true"],
                "checks": [
                    {"id": "a", "grader": "boxeval.regex", "configuration": {"pattern": "a"}},
                    {"id": "b", "grader": "sevro.shell", "configuration": {"run": "true"}},
                ],
                "extension": {"command": ["x"], "replaces": ["boxeval.regex", "boxeval.commands"]},
            }
        )
    )
    left = without_replaced(declared)
    assert ([one.id for one in left.checks], left.commands) == (["b"], ())
    assert left.extension == declared.extension
    assert left.extension and left.extension.verdict_policy is None
    none = declared.model_copy(update={"extension": USE})
    assert without_replaced(none) == none


@pytest.mark.contract("G68", "G69")
def test_files_and_declaration_are_a_dimension_of_the_identity() -> None:
    one = task(verify=Verify(extension=USE), extension_sources=sha("ext"))
    other = one.model_copy(update={"extension_sources": sha("other")})
    asked = task(verify=Verify(extension=POLICY), extension_sources=sha("ext"))
    images = {name: PlannedImage(name=name, image_id="sha256:1") for name in (one.image, one.grader_image)}
    made = [dimensions(plan(each, images=images), each) for each in (one, other, asked)]
    for changed in made[1:]:
        assert [name for name in made[0] if made[0][name] != changed[name]] == ["extension"]


def test_a_breach_in_its_box_spoils_everything() -> None:
    asked = ExchangeSeen(method=Method.EVALUATE, request=sha("r"), box=settled(survivors=1, settled=False))
    broken = outcome(found("failed", exchanges=(asked,)))
    assert row(broken) == ("error", "not_assessed", "isolation_failed", "void")


@pytest.mark.contract("G65")
def test_an_extension_that_cannot_be_opened_is_a_grading_error() -> None:
    planned = task(verify=Verify(extension=USE), extension_sources=sha("ext"))
    fault = SetupFault(failure_class=FailureClass.GRADER_ERROR, detail="extension: describe: no")
    result = decide(planned, Observations(fault=fault, extension=found()), {})
    assert row(result) == ("error", "not_assessed", "grader_error", "void")
    assert result.execution == "not_run"


def test_a_sealed_extension_is_the_planned_one() -> None:
    planned = task(verify=Verify(extension=USE), extension_sources=sha("ext"))
    assert checks_fault(planned, Observations(extension=found("passed"))) is None
    other = Observations(extension=found("passed").model_copy(update={"sources": sha("other")}))
    assert checks_fault(planned, other) == "the extension is not the one that was planned"
    undeclared = checks_fault(task(), Observations(extension=found("passed")))
    assert undeclared == "there is an extension that the task does not declare"


def sealed(blobs: BlobStore, ending: Any = None) -> ExtensionSeen:
    """What a trial seals of an extension of which one check failed."""
    describe = make_request("boxeval", Method.DESCRIBE, ASKED)
    evaluate = make_request("boxeval", Method.EVALUATE, evaluation())
    failed = {"checks": [check("failed")], "metrics": []}
    exchanges = []
    for request, result in ((describe, DESCRIBED), (evaluate, failed)):
        envelope = {"protocol": request.protocol, "id": request.id, "method": request.method}
        data = as_json({**envelope, "result": result})
        process = ending if ending and request is evaluate else command(stdout=capture(data, blobs.put(data)))
        exchanges.append(
            ExchangeSeen(
                method=Method(request.method), request=blobs.put(encode(request)), box=settled(process)
            )
        )
    bare = ExtensionSeen(sources=sha("ext"), negotiated=WHO, exchanges=tuple(exchanges))
    return bare if ending else judged(bare, USE, WHO, evaluation(), evaluated(check("failed")))


def test_verify_reads_the_answers_again(tmp_path: Any) -> None:
    blobs = BlobStore(tmp_path / "blobs")
    seen = sealed(blobs)
    assert seen.checks[0].status is CheckStatus.FAILED
    assert extension_fault(USE, seen, blobs.get) is None
    passed = seen.checks[0].model_copy(update={"status": CheckStatus.PASSED})
    for forged in (
        {"checks": (passed,)},
        {"checks": ()},
        {"checks": (*seen.checks, passed.model_copy(update={"id": "example.words.more"}))},
        {"recommendation": "passed"},
        {"negotiated": WHO.model_copy(update={"version": "2"})},
        {"exchanges": seen.exchanges[:1]},
        {"changed": True},
    ):
        assert extension_fault(USE, seen.model_copy(update=forged), blobs.get), forged


@pytest.mark.parametrize("ending", [timed_out(), killed(9), command(3)])
def test_verify_takes_no_pass_from_a_process_that_ended_badly(tmp_path: Any, ending: Any) -> None:
    blobs = BlobStore(tmp_path / "blobs")
    bare = sealed(blobs, ending)
    passed = CheckSeen(id="example.words.count", grader="example.words", status=CheckStatus.PASSED)
    assert extension_fault(USE, bare.model_copy(update={"checks": (passed,)}), blobs.get)
    assert box(0).settled
