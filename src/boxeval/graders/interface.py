"""A grader takes evidence and gives a verdict. One module a grader; `registry` knows which is whose.

A grader never raises for what a candidate did: that is a verdict. It raises EngineError and Cancelled as the trial
does. What it asks of the engine goes through the bench, which `boxeval.trial.grade` makes for one trial.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol

from boxeval.rules.judging import Exchange
from boxeval.sandbox.job import Job
from boxeval.spec.box import BoxResult
from boxeval.spec.checks import Check
from boxeval.spec.graded import CheckSeen, CheckVerdict, FinalMessage, GitHeadSeen
from boxeval.spec.judged import Judged

TextGrader = Callable[[Check, bytes], CheckVerdict]
"""The verdict of a check on a text: the final message, or what a command printed (`examiner.Examiner.grade`)."""


class Phase(IntEnum):
    """The order of grading (G63): output, shell, git-head, semantic, extension."""

    OUTPUT = 0
    SHELL = 1
    GIT_HEAD = 2
    SEMANTIC = 3
    EXTENSION = 4


@dataclass(frozen=True, slots=True)
class BoxRun:
    """A box that ran one command. `stdout` is the head and tail of as many bytes as the job asked for."""

    result: BoxResult
    stdout: bytes


class Bench(Protocol):
    """What the graders of one trial work with."""

    @property
    def message(self) -> FinalMessage:
        """The candidate's final message."""

    @property
    def declared(self) -> tuple[Check, ...]:
        """All checks of the task."""

    @property
    def memory_bytes(self) -> int:
        """What a box may use, what it writes to its disk included."""

    def message_text(self) -> bytes:
        """The bytes of a complete final message."""

    def run(self, job: Job, timeout_ms: int, *, own_image: bool = False) -> BoxRun:
        """Run a job in a fresh box over the graded snapshot; what it writes there is gone after it (G20).

        `own_image`: in boxeval's grader image, which has Python and Git, instead of the suite's.
        """

    def environment(self, *, own_image: bool = False) -> dict[str, str]:
        """The environment of a check's command (G21)."""

    def git_head(self) -> GitHeadSeen:
        """HEAD before and after the candidate, read once a trial."""

    def judge(self, exchange: Exchange) -> Judged:
        """Show the judge a text and ask it, once a trial for each exchange."""

    def grade_text(self, check: Check, text: bytes) -> CheckVerdict:
        """See `TextGrader`."""


class Grader(Protocol):
    """One kind of check."""

    phase: Phase

    def grade(self, check: Any, bench: Bench) -> CheckSeen:
        """The verdict on what the candidate left. `check` is of the grader's own type."""


def seen_of(check: Check, verdict: CheckVerdict, **more: Any) -> CheckSeen:
    """A verdict as the record of a check."""
    return CheckSeen(id=check.id, grader=check.grader, **verdict.model_dump(exclude=set(more)), **more)
