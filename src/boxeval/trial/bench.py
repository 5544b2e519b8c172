"""What the graders of one trial work with: boxes over its graded snapshot, its message, HEAD (step 6)."""

from __future__ import annotations

from boxeval.agents.environment import base_environment, grader_environment
from boxeval.graders.git_head import head_of, read_job, seen_after
from boxeval.graders.interface import BoxRun
from boxeval.rules.judging import Exchange
from boxeval.sandbox.images import GRADER
from boxeval.sandbox.job import Job
from boxeval.sandbox.settings import MIB
from boxeval.spec.checks import Check, GitHeadCheck
from boxeval.spec.graded import CheckVerdict, FinalMessage, GitHeadSeen, MessageStatus
from boxeval.spec.judged import Judged
from boxeval.spec.outcome import FailureClass
from boxeval.trial.boxes import box_result
from boxeval.trial.context import TrialContext
from boxeval.trial.fault import StageFault
from boxeval.trial.fixtures import FixtureRef
from boxeval.trial.grader_boxes import GraderBoxes
from boxeval.trial.judge import Judge

KEPT_BYTES = 64 * 1024
"""Of each output of a check, head and tail (docs/graders.md)."""


class TrialBench:
    """Implements `boxeval.graders.interface.Bench`."""

    def __init__(
        self,
        boxes: GraderBoxes,
        message: FinalMessage | None = None,
        base: str | None = None,
        role: str = "check",
    ) -> None:
        self._boxes, self._context, self._base, self._role = boxes, boxes.context, base, role
        self._number = 0
        self._git_head: GitHeadSeen | None = None
        self.judge_of_trial = Judge(boxes.context)
        self.message = message or FinalMessage(status=MessageStatus.MISSING, reason="there is none")

    @property
    def declared(self) -> tuple[Check, ...]:
        """All checks of the task."""
        return self._context.task.verify.checks

    @property
    def memory_bytes(self) -> int:
        """What a box may use."""
        return self._context.slot.policy.limits.memory_mib * MIB

    def message_text(self) -> bytes:
        """The bytes of a complete final message."""
        return self._context.blobs.get(self.message.sha256) if self.message.sha256 else b""

    def run(self, job: Job, timeout_ms: int, *, own_image: bool = False) -> BoxRun:
        """Run a job in a fresh box over the snapshot."""
        context = self._context
        self._number += 1
        image = context.image(GRADER if own_image else context.task.grader_image)
        end = self._boxes.run(f"{self._role}{self._number}", image, (job,), timeout_ms)
        keep = KEPT_BYTES if context.task.verify.evidence == "kept" else 0
        result = box_result(end, context.blobs, keep_bytes=keep)
        # As it is kept: what is graded now is what `verify` grades again.
        return BoxRun(result, context.blobs.redact(end.commands[0].stdout.kept) if end.commands else b"")

    def environment(self, *, own_image: bool = False) -> dict[str, str]:
        """What a check's command sees: nothing of the candidate's, and of the suite what it gives to graders."""
        context = self._context
        if own_image:
            return base_environment(context.image(GRADER).path_env)
        path = context.image(context.task.grader_image).path_env
        return grader_environment(context.task, path, ambient=context.ambient)

    def git_head(self) -> GitHeadSeen:
        """HEAD before and after the candidate, read once."""
        if self._git_head is None:
            base = self._base or ""
            job = read_job(self.environment(own_image=True), base)
            ran = self.run(job, job.timeout_ms, own_image=True)
            self._git_head = seen_after(base, ran.result, ran.stdout)
        return self._git_head

    @property
    def git_head_if_read(self) -> GitHeadSeen | None:
        """HEAD, if a check has asked for it."""
        return self._git_head

    def judge(self, exchange: Exchange) -> Judged:
        """Ask the judge, once for each exchange."""
        return self.judge_of_trial.ask(exchange, self)

    def grade_text(self, check: Check, text: bytes) -> CheckVerdict:
        """Grade a text in a bounded child process."""
        return self._context.examiner.grade(check, text)


def base_head(context: TrialContext, fixture: FixtureRef) -> str | None:
    """HEAD of the fixture, before the candidate runs (G23); None if no check asks for it."""
    if not any(isinstance(check, GitHeadCheck) for check in context.task.verify.checks):
        return None
    bench = TrialBench(GraderBoxes(context, fixture, ()), role="base")
    job = read_job(bench.environment(own_image=True))
    ran = bench.run(job, job.timeout_ms, own_image=True)
    read = head_of(ran.result, ran.stdout)
    if isinstance(read, str):
        raise StageFault(FailureClass.SETUP_FAILED, f"the fixture's {read}")
    return read[0]
