"""Compiles every pattern and schema of a suite before anything runs (G2), and tells what nothing enforces."""

from __future__ import annotations

from boxeval.errors import Problem, SuiteError
from boxeval.formats.suite_v2 import LoadedSuite
from boxeval.formats.yaml_source import in_order
from boxeval.graders.examiner import Examiner
from boxeval.spec.checks import Check, ShellCheck, TextCheck


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
    return tuple(in_order(warnings))


def needs_engine(check: Check) -> bool:
    """Whether there may be a pattern or a schema in it."""
    if isinstance(check, ShellCheck):
        return check.configuration.asserts_text
    return isinstance(check, TextCheck)
