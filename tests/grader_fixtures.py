"""One examiner for all tests of a worker, and makers of checks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
from pydantic import TypeAdapter

from boxeval.graders.examiner import Examiner
from boxeval.spec.checks import Check
from boxeval.spec.graded import CheckVerdict

_CHECK: TypeAdapter[Any] = TypeAdapter(Check)


def check(grader: str, /, name: str = "c", **configuration: Any) -> Check:
    """A declared check; configuration as a suite writes it."""
    tree = {"id": name, "grader": grader, "configuration": configuration}
    return cast(Check, _CHECK.validate_python(tree, strict=False, by_alias=True, by_name=False))


@pytest.fixture(scope="session")
def examiner() -> Iterator[Examiner]:
    with Examiner() as examiner:
        yield examiner


class Grades:
    """Grades one text by one check, and says no more than the status."""

    def __init__(self, examiner: Examiner) -> None:
        self._examiner = examiner

    def verdict(self, text: str | bytes, grader: str, **configuration: Any) -> CheckVerdict:
        data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        return self._examiner.grade(check(f"boxeval.{grader}", **configuration), data)

    def __call__(self, text: str | bytes, grader: str, **configuration: Any) -> str:
        return self.verdict(text, grader, **configuration).status.value

    def faults(self, grader: str, **configuration: Any) -> list[tuple[tuple[str | int, ...], str]]:
        return list(self._examiner.compile(check(f"boxeval.{grader}", **configuration)).faults)

    def warnings(self, grader: str, **configuration: Any) -> list[tuple[tuple[str | int, ...], str]]:
        return list(self._examiner.compile(check(f"boxeval.{grader}", **configuration)).warnings)


@pytest.fixture
def grades(examiner: Examiner) -> Grades:
    return Grades(examiner)
