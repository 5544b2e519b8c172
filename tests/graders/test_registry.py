"""The order of grading, graders that throw, and the box of a check that never had a turn to look at."""

from __future__ import annotations

from typing import Any

import pytest

import run_samples as samples
from boxeval.graders.interface import BoxRun
from boxeval.graders.registry import grade_all
from boxeval.sandbox.job import Job
from boxeval.spec.checks import Check
from boxeval.spec.graded import CheckStatus, CheckVerdict, FinalMessage, GitHeadSeen, MessageStatus

COMMIT = "a" * 40


class FakeBench:
    """Answers like a bench, and remembers what was asked of it."""

    message = FinalMessage(status=MessageStatus.COMPLETE, size_bytes=2, sha256=samples.sha("hi"))
    declared: tuple[Check, ...] = ()
    memory_bytes = 1 << 30

    def __init__(self, throws: BaseException | None = None) -> None:
        self.asked: list[str] = []
        self._throws = throws

    def message_text(self) -> bytes:
        return b"hi"

    def environment(self, *, own_image: bool = False) -> dict[str, str]:
        return {"OWN": str(own_image)}

    def run(self, job: Job, timeout_ms: int, *, own_image: bool = False) -> BoxRun:
        self.asked.append("file" if own_image else f"shell {job.argv[-1]} {timeout_ms}")
        return BoxRun(samples.box(), b'{"count": 1}')

    def git_head(self) -> GitHeadSeen:
        self.asked.append("head")
        return GitHeadSeen(base=COMMIT, current=COMMIT, base_is_ancestor=True)

    def grade_text(self, check: Check, text: bytes) -> CheckVerdict:  # noqa: ARG002
        self.asked.append(f"text {check.id}")
        if self._throws and check.id == "bad":
            raise self._throws
        return CheckVerdict(status=CheckStatus.PASSED)

    def judge(self, exchange: Any) -> Any:
        raise AssertionError(exchange)


CHECKS = (
    samples.declared("head", "boxeval.git-head", kind="unchanged"),
    samples.declared("file", "boxeval.log-parse", file="log.jsonl"),
    samples.declared("shell", "boxeval.shell", run="true", timeoutMs=7),
    samples.declared("bad"),
    samples.declared("good"),
)


@pytest.mark.contract("G63")
def test_graders_work_in_their_order_and_are_told_in_the_suites(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = FakeBench()
    found = grade_all(CHECKS, bench)
    assert bench.asked == ["text bad", "text good", "file", "shell true 7", "head"]
    assert [check.id for check in found] == ["head", "file", "shell", "bad", "good"]
    assert {check.status for check in found} == {CheckStatus.PASSED}
    monkeypatch.setattr(FakeBench, "message", FinalMessage(status=MessageStatus.MISSING, reason="none"))
    silent = FakeBench()
    assert [check.status.value for check in grade_all(CHECKS, silent)][3:] == ["unavailable"] * 2
    assert silent.asked == ["file", "shell true 7", "head"]


@pytest.mark.contract("G63")
def test_a_judge_is_asked_after_all_others() -> None:
    class Judging(FakeBench):
        def judge(self, exchange: Any) -> Any:
            self.asked.append(f"judge of {exchange.checks[0].id}")
            raise ValueError("no judge")

    semantic = samples.declared("kind", "boxeval.semantic", proposition="It is kind.")
    bench = Judging()
    bench.declared = (semantic, *CHECKS)
    found = grade_all(bench.declared, bench)
    assert bench.asked[-2:] == ["head", "judge of kind"] and len(bench.asked) == 6
    assert [check.status.value for check in found] == ["error", *["passed"] * 5]


@pytest.mark.contract("V39")
@pytest.mark.parametrize("thrown", [ValueError("x"), KeyError("x"), OSError("x"), ZeroDivisionError("x")])
def test_a_grader_that_throws_is_one_error_and_the_others_go_on(thrown: BaseException) -> None:
    found = {check.id: check for check in grade_all(CHECKS, FakeBench(thrown))}
    assert found["bad"].status is CheckStatus.ERROR
    assert (found["bad"].reason or "").startswith(f"the grader failed: {type(thrown).__name__}")
    assert {found[name].status for name in ("head", "file", "shell", "good")} == {CheckStatus.PASSED}


def test_what_ends_a_trial_is_not_caught() -> None:
    with pytest.raises(KeyboardInterrupt):
        grade_all(CHECKS, FakeBench(KeyboardInterrupt()))
