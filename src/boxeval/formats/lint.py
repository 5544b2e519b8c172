"""Graders that a candidate can forge, found by reading the suite: warnings of `boxeval validate` and `run`.

A lint can only know what is written. It looks for two things: a test runner that loads what a candidate may have
planted, where nothing in the suite keeps that out, and a pattern for a test's result in a text that a candidate can
print. docs/graders.md tells how to write them so that they hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from boxeval.formats.faults import Fault
from boxeval.formats.patterns import matcher
from boxeval.formats.plants import PYTHON, RUNNERS
from boxeval.spec.checks import OutputCheck, RegexCheck, ShellCheck
from boxeval.spec.suite import Task

_RESULT = re.compile(r"pass(?:ed|es)?\b|\bok\b|success|succeed|0 (?:failed|errors|failures)|all tests", re.I)
_PIPED = re.compile(r"\|\s*(?:e|f)?grep\b|\|\s*tail\b|\|\s*awk\b")
_OWN_CODE = re.compile(rf"(?:^|[\s;&|(])(?:\./\S+|{PYTHON}\s+(?!-)\S+\.py|node\s+\S+|(?:ba)?sh\s+\S+\.sh)")


def forgeable(task: Task) -> Iterator[Fault]:
    """Warnings on one task, by place in it."""
    for place, command in _commands(task):
        runner = next((one for one in RUNNERS if one.called.search(command)), None)
        if runner is None:
            continue
        if _PIPED.search(command):
            said = "can be printed by the code under test; let its exit code decide"
            yield place, f"what {runner.name} prints {said}"
        plants = runner.plants.items()
        if left := [path for path, harmless in plants if not _kept_out(task, path, command, harmless)]:
            planted = " or ".join(f"`{path}`" for path in left)
            said = f"{runner.name} can be silenced by {planted}, which the candidate may plant"
            yield place, f"{said}; `protect` it, put it into `verify.files`, or {runner.mend}"
    yield from _patterns(task)


def _commands(task: Task) -> Iterator[tuple[tuple[str | int, ...], str]]:
    for number, command in enumerate(task.verify.commands):
        yield ("verify", "commands", number), command
    for place, step in enumerate(task.steps):
        for number, command in enumerate(step.verify.commands if step.verify else ()):
            yield ("steps", place, "verify", "commands", number), command
    for number, check in enumerate(task.verify.checks):
        if isinstance(check, ShellCheck):
            yield ("verify", "checks", number, "configuration", "run"), check.configuration.run


def _kept_out(task: Task, path: str, command: str, harmless: str | None) -> bool:
    """Whether a planted file would be put back, overwritten, forbidden, out of bounds, or not looked at."""
    if harmless is not None and re.search(harmless, command):
        return True
    if path in task.verify.files:
        return True
    if any(
        matcher(patterns).match_file(path)
        for patterns in (task.protect, task.verify.forbid_paths)
        if patterns
    ):
        return True
    allowed = [task.writes] if not task.steps else [step.writes or task.writes for step in task.steps]
    return all(writes is not None and not _may_write(writes, path) for writes in allowed)


def _may_write(writes: tuple[str, ...], path: str) -> bool:
    return any(path == entry or (entry.endswith("/") and path.startswith(entry)) for entry in writes)


def _patterns(task: Task) -> Iterator[Fault]:
    """Patterns for a result in what a candidate prints: its message, or the output of its own code."""
    for number, check in enumerate(task.verify.checks):
        place = ("verify", "checks", number, "configuration")
        if isinstance(check, RegexCheck):
            if not check.configuration.negate and _RESULT.search(check.configuration.pattern):
                yield (*place, "pattern"), _CLAIM
        elif isinstance(check, OutputCheck | ShellCheck):
            pattern = check.configuration.expect_regex
            if pattern is None or not _RESULT.search(pattern):
                continue
            if isinstance(check, OutputCheck):
                yield (*place, "expectRegex"), _CLAIM
            elif _runs_candidate(check.configuration.run):
                yield (
                    (*place, "expectRegex"),
                    ("is looked for in what the code under test can print; let the exit code decide"),
                )


_CLAIM = (
    "is looked for in the candidate's own message, which can claim any result; run what is claimed instead"
)


def _runs_candidate(command: str) -> bool:
    return bool(_OWN_CODE.search(command) or any(runner.called.search(command) for runner in RUNNERS))
