"""Reads a sevro case file, and makes of it what a suite with one task is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boxeval.errors import Problem, SuiteError
from boxeval.formats import place
from boxeval.formats.extension_files import GRADERS
from boxeval.formats.faults import Fault
from boxeval.formats.host_files import read_source
from boxeval.formats.typed import check
from boxeval.formats.yaml_source import Source, in_order
from boxeval.receipts.canonical import canonical
from boxeval.spec.case import Case, CaseFixture
from boxeval.spec.checks import grader_name
from boxeval.spec.extension import DeclaredCheck, ExtensionCase, JsonObject
from boxeval.spec.workspace import Workspace, WorkspaceKind

MAX_BYTES = 64 * 1024 * 1024
"""Of a case file: twice what a generated history may hold, since JSON escapes."""
_PLACES: tuple[tuple[place.Path, place.Path], ...] = (
    (("verify", "checks"), ("checks",)),
    (("workspace", "path"), ("fixture", "sourceRef")),
    (("workspace",), ("fixture",)),
    (("runner", "prompt"), ("prompt",)),
    (("steps", 0, "prompt"), ("prompt",)),
    (("steps", 1, "prompt"), ("followUpPrompt",)),
)
"""Where the parts of the task stand in the case."""


@dataclass(slots=True)
class CaseSource(Source):
    """A case file that tells problems of the task that was made of it at their places in the case."""

    def problem(self, path: place.Path, message: str, *, at_key: bool = False) -> Problem:
        """A problem with the value at `path` of the case, or of the suite."""
        if not self.marks:  # a tree that was in no file of a user's
            return Problem(self.file, place.dotted(in_case(path)), message)
        return Source.problem(self, in_case(path), message, at_key=at_key)


@dataclass(frozen=True, slots=True)
class LoadedCase:
    """A case whose parts are well typed; `sha256` is over the file's bytes, or the case in canonical form.

    `own_checks` and `data` are of a case that an extension supplied: checks by its graders, and what comes back to it.
    """

    case: Case
    source: CaseSource
    sha256: str
    file: Path
    own_checks: tuple[DeclaredCheck, ...] = ()
    data: JsonObject = field(default_factory=dict)


def load_case(path: Path) -> LoadedCase:
    """Read a case file in YAML or JSON. Raises `SuiteError` with every problem that its types tell."""
    read, data = read_source(path, "case file", MAX_BYTES)
    source = CaseSource(read.file, read.tree, read.problems, read.marks, read.keys, read.unquoted)
    return LoadedCase(_case(source), source, hashlib.sha256(data).hexdigest(), path)


def supplied_case(supplied: ExtensionCase, file: Path) -> LoadedCase:
    """A case that an extension supplied; `file` stands for its place. Raises `SuiteError` like `load_case`."""
    own = tuple(check for check in supplied.checks if grader_name(check.grader) not in GRADERS)
    tree = supplied.model_dump(mode="json", exclude_none=True, exclude={"extension_data"})
    tree["checks"] = [check for check in tree["checks"] if grader_name(check["grader"]) in GRADERS]
    source = CaseSource(f"case {place.show(supplied.id)} of the extension", tree)
    sha256 = hashlib.sha256(canonical(supplied)).hexdigest()
    return LoadedCase(_case(source), source, sha256, file, own, supplied.extension_data)


def _case(source: CaseSource) -> Case:
    case, problems = check(source, Case)
    if case is not None:
        problems += [source.problem(where, message) for where, message in fixture_faults(case.fixture)]
    if case is None or problems:
        raise SuiteError(in_order(problems))
    return case


def fixture_faults(fixture: CaseFixture) -> Iterator[Fault]:
    """A fixture that is not one of the three kinds. The rest is checked as a workspace is."""
    if fixture.source_ref is not None and fixture.kind not in (None, "repository"):
        yield ("fixture", "sourceRef"), f"kind `{fixture.kind}` does not take `sourceRef`"
    elif fixture.source_ref is None and fixture.kind == "repository":
        yield ("fixture",), "kind `repository` needs `sourceRef`"
    elif fixture.kind != "generated" and fixture.commits is not None:
        yield ("fixture", "commits"), "needs `kind: generated`"
    elif fixture.source_ref is None and fixture.files is None and fixture.kind in (None, "inline"):
        needs = "`files`, `sourceRef` or `kind: generated`" if fixture.kind is None else "`files`"
        yield ("fixture",), f"needs {needs}"


def workspace_of(fixture: CaseFixture) -> Workspace:
    """The fixture as a workspace. A repository keeps its name in the source map as its path."""
    kind = WorkspaceKind.INLINE
    if fixture.source_ref:
        kind = WorkspaceKind.GIT
    elif fixture.kind == "generated":
        kind = WorkspaceKind.GENERATED
    names = fixture.model_fields_set - {"kind", "source_ref"}
    fields: dict[str, Any] = {name: getattr(fixture, name) for name in names}
    if fixture.source_ref:
        fields["path"] = fixture.source_ref
    return Workspace(kind=kind, **fields)


def in_case(path: place.Path) -> place.Path:
    """The place in the case of a place in the suite that was made of it; another path as it is."""
    if path[:1] != ("tasks",):
        return path
    rest = path[2:]
    for suite, case in _PLACES:
        if rest[: len(suite)] == suite:
            return case + rest[len(suite) :]
    return rest
