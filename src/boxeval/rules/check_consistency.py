"""What `verify` asks of the sealed records of checks: those that were declared, decided as their evidence says."""

from __future__ import annotations

from boxeval.rules.box_checks import git_head_verdict, shell_verdict
from boxeval.rules.file_checks import file_verdict
from boxeval.rules.human import human_verdict
from boxeval.rules.judging import judged_verdict
from boxeval.rules.message import printed_message
from boxeval.spec.checks import Check, FileCheck, GitHeadCheck, HumanCheck, JudgedCheck, ShellCheck, TextCheck
from boxeval.spec.graded import CheckSeen, CheckStatus, CheckVerdict, FinalMessage, MessageStatus
from boxeval.spec.plan import PlannedTask
from boxeval.spec.suite import RunnerKind
from boxeval.spec.trial import Observations

_PRINTED = {RunnerKind.EXTERNAL_COMMAND, RunnerKind.SCRIPTED}
"""Kinds whose final message is what they print."""
_WORDS = ("status", "reason", "expected", "received", "limit", "score")


def checks_fault(task: PlannedTask, seen: Observations) -> str | None:
    """What does not fit; None if all does, as far as the sealed observations decide."""
    declared = [(check.id, check.grader) for check in task.verify.checks]
    if seen.checks and [(check.id, check.grader) for check in seen.checks] != declared:
        return "the checks are not those that the task declares"
    if fault := _extension_fault(task, seen):
        return fault
    if seen.message and task.runner.kind in _PRINTED and seen.message != printed_message(task, seen):
        return "the final message is not what the candidate printed"
    for check, found in zip(task.verify.checks, seen.checks, strict=False):
        due = decided(task, check, found, seen)
        if due is not None and any(getattr(due, name) != getattr(found, name) for name in _WORDS):
            return f"the verdict of check {check.id} does not follow from its evidence"
    return None


def _extension_fault(task: PlannedTask, seen: Observations) -> str | None:
    if seen.extension is None:
        return None
    if task.verify.extension is None:
        return "there is an extension that the task does not declare"
    if seen.extension.sources != task.extension_sources:
        return "the extension is not the one that was planned"
    return None


def decided(task: PlannedTask, check: Check, found: CheckSeen, seen: Observations) -> CheckVerdict | None:
    """The verdict that follows from what was sealed; None where a text has to be looked at again."""
    if isinstance(check, TextCheck):
        return unavailable(seen.message)
    if isinstance(check, ShellCheck):
        return shell_verdict(check.configuration, found.box)
    if isinstance(check, GitHeadCheck):
        return git_head_verdict(check.configuration, seen.git_head)
    if isinstance(check, FileCheck):
        return file_verdict(check, found.box, found.value)
    if isinstance(check, JudgedCheck):
        return unavailable(seen.message) or judged_verdict(check, task.verify.checks, seen.judged)
    if isinstance(check, HumanCheck):
        return human_verdict(check, found.value)
    return None


def unavailable(message: FinalMessage | None) -> CheckVerdict | None:
    """Without a complete final message there is nothing that an output check could pass by (G4)."""
    if message is not None and message.status is MessageStatus.COMPLETE:
        return None
    reason = message.reason if message else "there is none"
    return CheckVerdict(status=CheckStatus.UNAVAILABLE, reason=f"final message: {reason}")
