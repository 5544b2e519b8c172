"""Compiles every pattern and schema of a suite before anything runs (G2); warns of doubtful checks."""

from __future__ import annotations

from collections.abc import Iterator

from boxeval.errors import Problem, SuiteError
from boxeval.formats.suite_v2 import LoadedSuite
from boxeval.formats.yaml_source import in_order
from boxeval.graders.examiner import Examiner
from boxeval.spec.checks import Check, ShellCheck, TextCheck
from boxeval.spec.graded import CheckStatus
from boxeval.spec.models import Script, Text
from boxeval.spec.suite import Task


def preflight(loaded: LoadedSuite, examiner: Examiner) -> tuple[Problem, ...]:
    """Raises `SuiteError` with everything that does not compile; returns warnings."""
    problems: list[Problem] = []
    warnings: list[Problem] = []
    for index, task in enumerate(loaded.suite.tasks):
        for number, check in enumerate(task.verify.checks):
            if not needs_engine(check):
                continue
            place = ("tasks", index, "verify", "checks", number, "configuration")
            compiled = examiner.compile(check)
            problems += [loaded.source.problem((*place, *path), said) for path, said in compiled.faults]
            warnings += [loaded.source.problem((*place, *path), said) for path, said in compiled.warnings]
    if problems:
        raise SuiteError(in_order(problems))
    for index, task in enumerate(loaded.suite.tasks):
        for number, said in _fails_itself(task, loaded.scripts.get(f"task:{task.id}"), examiner):
            spot = ("tasks", index, "verify", "checks", number)
            warnings.append(loaded.source.problem(spot, said))
    return tuple(in_order(warnings))


def _fails_itself(task: Task, script: Script | None, examiner: Examiner) -> Iterator[tuple[int, str]]:
    """Checks of the final message that the task's own script, its reference solution, would fail."""
    last = script.turns[-1] if script else None
    if not isinstance(last, Text) or task.expect == "failed" or task.steps:
        return
    for number, check in enumerate(task.verify.checks):
        if isinstance(check, TextCheck):
            verdict = examiner.grade(check, _printed(last.text))
            if verdict.status is CheckStatus.FAILED:
                yield (
                    number,
                    f"the task's own script fails it: {verdict.reason}; if that is meant, say `expect: failed`",
                )


def _printed(text: str) -> bytes:
    """As the reference agent prints its last message."""
    return text.encode("utf-8", "backslashreplace") + b"\n"


def needs_engine(check: Check) -> bool:
    """Whether there may be a pattern or a schema in it."""
    if isinstance(check, ShellCheck):
        return check.configuration.asserts_text
    return isinstance(check, TextCheck)
