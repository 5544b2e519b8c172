"""The fixtures of a suite's tasks, each mistake told at the place where the suite names it."""

from __future__ import annotations

from collections.abc import Container, Iterator

from boxeval.errors import FixtureError, Problem, SuiteError
from boxeval.formats.boundaries import Boundaries, fixture_faults
from boxeval.formats.extension_files import read_extension
from boxeval.formats.faults import Fault
from boxeval.formats.fixtures import Fixture, GitSource, git_source, read_fixture
from boxeval.formats.suite_v2 import LoadedSuite
from boxeval.rules.paths import readable
from boxeval.spec.suite import Task
from boxeval.spec.workspace import Workspace, WorkspaceKind


def read_sources(loaded: LoadedSuite, wanted: Container[str]) -> dict[str, Fixture | GitSource]:
    """What the workspaces of the tasks in `wanted` are made of, by task id; each is read once.

    Needs no engine. Raises `SuiteError` with every one that cannot be read.
    """
    read: dict[str, Fixture | GitSource] = {}
    problems: list[Problem] = []
    for index, task in enumerate(loaded.suite.tasks):
        if task.id not in wanted:
            continue
        workspace = _located(task.workspace, loaded)
        reader = git_source if workspace.kind is WorkspaceKind.GIT else read_fixture
        try:
            read[task.id] = reader(workspace, loaded.directory)
        except FixtureError as error:
            problems.append(loaded.source.problem(("tasks", index, "workspace", "path"), str(error)))
        else:
            faults = _boundary_faults(task, read[task.id])
            problems += [loaded.source.problem(("tasks", index, *place), fault) for place, fault in faults]
    if problems:
        raise SuiteError(problems)
    return read


def _located(workspace: Workspace, loaded: LoadedSuite) -> Workspace:
    """The workspace with the place of its repository, if the suite has only a name for it."""
    place = loaded.repositories.get(workspace.path or "")
    return workspace if place is None else workspace.model_copy(update={"path": str(place)})


def read_extensions(loaded: LoadedSuite, wanted: Container[str]) -> dict[str, Fixture]:
    """The files of the extensions of the tasks in `wanted`, by task id. Raises `SuiteError` like `read_sources`."""
    read: dict[str, Fixture] = {}
    problems: list[Problem] = []
    for index, task in enumerate(loaded.suite.tasks):
        if task.id not in wanted or task.verify.extension is None:
            continue
        try:
            read[task.id] = read_extension(task.verify.extension, loaded.directory)
        except FixtureError as error:
            place = ("tasks", index, "verify", "extension", "sources")
            problems.append(loaded.source.problem(place, str(error)))
    if problems:
        raise SuiteError(problems)
    return read


def _boundary_faults(task: Task, source: Fixture | GitSource) -> Iterator[Fault]:
    """`writes` and `protect` against the files. Of those that a box makes, the trial tells."""
    bounds = Boundaries.of(task)
    made_in_a_box = task.workspace.written or task.workspace.setup
    if not bounds.is_empty and isinstance(source, Fixture) and not made_in_a_box:
        yield from fixture_faults(bounds, {readable(entry.path): entry.kind for entry in source.entries()})
