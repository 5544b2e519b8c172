"""Checks that ran in a box: the verdict on each, from what was seen of the box and nothing else."""

from __future__ import annotations

from boxeval.rules.endings import breach, describe, exit_code, limit_hit
from boxeval.rules.grading import fault_of
from boxeval.spec.box import BoxResult
from boxeval.spec.checks import GitHeadConfiguration, ShellConfiguration
from boxeval.spec.graded import CheckStatus, CheckVerdict, GitHeadSeen
from boxeval.spec.outcome import FailureClass

STDOUT_BYTES = 1024 * 1024
"""More than this of stdout is no evidence for an assertion on it (G17)."""


def box_error(box: BoxResult | None, deadline_ms: int) -> CheckVerdict | None:
    """Why a box with one command says nothing about the candidate (G19); None if it does."""
    if box and (reason := breach(box)):
        return CheckVerdict(status=CheckStatus.ERROR, reason=reason)
    fault = fault_of(box, "its box", 1, deadline_ms)
    if fault is None:
        return None
    reason, failure, limit = fault
    if failure is FailureClass.TIMEOUT:
        reason = f"passed its deadline of {deadline_ms} ms"
        return CheckVerdict(status=CheckStatus.ERROR, reason=reason, limit="time")
    return CheckVerdict(
        status=CheckStatus.ERROR, reason=reason, limit="memory" if limit == "memory" else None
    )


def shell_verdict(configuration: ShellConfiguration, box: BoxResult | None) -> CheckVerdict | None:
    """The verdict of a shell check as far as its box decides; None: its stdout has to be looked at."""
    if error := box_error(box, configuration.timeout_ms):
        return error
    command = box.commands[0] if box else None
    if box is None or command is None:
        return CheckVerdict(status=CheckStatus.ERROR, reason="its box left no report")
    wanted, found = configuration.expected_exit_code, exit_code(command)
    if found != wanted:
        limit = limit_hit(box, command)
        note = f" at the grader's limit on {limit}" if limit else ""
        return CheckVerdict(
            status=CheckStatus.FAILED,
            reason=f"{describe(command)}{note}",
            expected=f"exit code {wanted}",
            received=f"exit code {found}",
        )
    if not configuration.asserts_text:
        return CheckVerdict(status=CheckStatus.PASSED)
    if command.stdout.size_bytes > STDOUT_BYTES:
        reason = f"printed {command.stdout.size_bytes} bytes; at most {STDOUT_BYTES} are compared"
        return CheckVerdict(status=CheckStatus.ERROR, reason=reason, limit="output")
    return None


def git_head_verdict(configuration: GitHeadConfiguration, seen: GitHeadSeen | None) -> CheckVerdict:
    """Whether HEAD moved as it should."""
    if seen is None or seen.error is not None or seen.base is None or seen.current is None:
        reason = (seen and seen.error) or "HEAD was not read before and after the candidate"
        return CheckVerdict(status=CheckStatus.ERROR, reason=reason)
    wanted = configuration.kind
    if wanted == "base-ancestor":
        holds = seen.base_is_ancestor is True
    else:
        holds = (seen.base == seen.current) == (wanted == "unchanged")
    if holds:
        return CheckVerdict(status=CheckStatus.PASSED)
    said = {
        "changed": "HEAD is what it was",
        "unchanged": "HEAD moved",
        "base-ancestor": "the base is no ancestor of HEAD",
    }
    return CheckVerdict(
        status=CheckStatus.FAILED,
        reason=said[wanted],
        expected=f"{wanted}, from {seen.base}",
        received=f"HEAD {seen.current}",
    )
