"""One request to the child: compile what a check declares, or grade a text by it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from boxeval.graders.child.json_assertions import grade_json, grade_output, grade_schema
from boxeval.graders.child.patterns import Patterns
from boxeval.graders.child.schemas import Schemas
from boxeval.graders.child.text_assertions import grade_regex, grade_text
from boxeval.graders.child.verdicts import PASSED, Verdict, error, failed
from boxeval.rules.json_values import is_pattern

_PATTERNS = ("pattern", "expectRegex", "notRegex")
_CONTAINS = ("contains", "containsJson")


class Grading:
    """The engines of a child, made once."""

    def __init__(self) -> None:
        self._patterns = Patterns()
        self._schemas = Schemas(self._patterns)

    def answer(self, request: dict[str, Any], text: bytes) -> dict[str, Any]:
        """`{"faults": ..., "warnings": ...}` of a compilation, or a verdict."""
        configuration = request["configuration"]
        try:
            if request["op"] == "compile":
                return self._compile(configuration)
            return self._grade(request["grader"], configuration, text)
        except MemoryError:
            return error("grading needs more memory than it may have", "memory")
        except RecursionError:
            return error("grading recurses too deep")
        except Exception as problem:
            return error(f"grading failed: {type(problem).__name__}: {problem}")

    def _compile(self, configuration: dict[str, Any]) -> dict[str, Any]:
        faults: list[tuple[tuple[str | int, ...], str]] = []
        warnings: list[tuple[tuple[str | int, ...], str]] = []
        flags = configuration.get("flags", "")
        for key in _PATTERNS:
            if key in configuration and (said := self._patterns.fault(configuration[key], flags)):
                faults.append(((key,), said))
        for key in _CONTAINS:
            for pattern in _inner_patterns(configuration.get(key)):
                if said := self._patterns.fault(pattern):
                    faults.append(((key,), said))
        if isinstance(schema := configuration.get("schema"), dict):
            found = self._schemas.compile(schema)
            faults += [(("schema", *path), text) for path, text in found.faults]
            warnings += [(("schema", *path), text) for path, text in found.warnings]
        return {"faults": faults, "warnings": warnings}

    def _grade(self, grader: str, configuration: dict[str, Any], text: bytes) -> Verdict:
        is_output = grader == "boxeval.shell"
        try:
            said = text.decode("utf-8")
        except UnicodeDecodeError as problem:
            reason = f"byte 0x{text[problem.start]:02x} at {problem.start} is not UTF-8"
            # What a candidate says is its own doing; what a check prints is the check's (G17).
            return error(f"stdout: {reason}") if is_output else failed(f"the message: {reason}", "UTF-8 text")
        if is_output:
            return self._printed(configuration, said)
        if grader == "boxeval.regex":
            return grade_regex(configuration, said, self._patterns)
        if grader == "boxeval.json":
            return grade_json(configuration, said, self._patterns)
        if grader == "boxeval.schema":
            return grade_schema(configuration, said, self._schemas)
        return grade_output(configuration, said, self._patterns, self._schemas)

    def _printed(self, configuration: dict[str, Any], said: str) -> Verdict:
        """Assertions on stdout. Exact text forgives one final newline, patterns see all (G15)."""
        exact = {key: value for key, value in configuration.items() if key == "expectExact"}
        others = {key: value for key, value in configuration.items() if key != "expectExact"}
        verdict = grade_text(exact, said.removesuffix("\n"), self._patterns)
        return verdict or grade_text(others, said, self._patterns) or PASSED


def _inner_patterns(value: Any) -> Iterator[str]:
    """Every `$regex` in a wanted value."""
    if is_pattern(value):
        yield value["$regex"]
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _inner_patterns(inner)
