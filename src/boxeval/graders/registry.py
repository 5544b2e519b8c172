"""Which grader takes which kind of check, and in which order they work."""

from __future__ import annotations

from boxeval.graders.files import FileGrader
from boxeval.graders.git_head import GitHeadGrader
from boxeval.graders.human import HumanGrader
from boxeval.graders.interface import Bench, Grader, seen_of
from boxeval.graders.judged import JudgedGrader
from boxeval.graders.shell import ShellGrader
from boxeval.graders.text import TextGrader
from boxeval.spec.checks import (
    Check,
    FileCheck,
    GitHeadCheck,
    HumanCheck,
    JudgedCheck,
    ShellCheck,
    TextCheck,
)
from boxeval.spec.graded import CheckSeen, CheckStatus, CheckVerdict

_TEXT, _SHELL, _GIT_HEAD, _FILE = TextGrader(), ShellGrader(), GitHeadGrader(), FileGrader()
_JUDGED, _HUMAN = JudgedGrader(), HumanGrader()


def grader_for(check: Check) -> Grader:
    """The grader of a check."""
    if isinstance(check, TextCheck):
        return _TEXT
    if isinstance(check, ShellCheck):
        return _SHELL
    if isinstance(check, GitHeadCheck):
        return _GIT_HEAD
    if isinstance(check, FileCheck):
        return _FILE
    if isinstance(check, JudgedCheck):
        return _JUDGED
    if isinstance(check, HumanCheck):
        return _HUMAN
    raise TypeError(f"no grader for {check.grader}")


def grade_all(checks: tuple[Check, ...], bench: Bench) -> tuple[CheckSeen, ...]:
    """Every check's record, in the order of `checks`. Graded in the order of G63.

    A grader that fails is an error of its check, and the others go on (V39); what ends the trial is not caught.
    """
    found: dict[str, CheckSeen] = {}
    for check in sorted(checks, key=lambda check: grader_for(check).phase):
        found[check.id] = _grade(check, bench)
    return tuple(found[check.id] for check in checks)


def _grade(check: Check, bench: Bench) -> CheckSeen:
    try:
        return grader_for(check).grade(check, bench)
    except (ValueError, LookupError, TypeError, ArithmeticError, OSError) as error:
        reason = f"the grader failed: {type(error).__name__}: {error}"[:200]
        return seen_of(check, CheckVerdict(status=CheckStatus.ERROR, reason=reason))
