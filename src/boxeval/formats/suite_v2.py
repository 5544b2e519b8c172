"""Reads a suite (version 2) with every file that it names, and tells all mistakes at once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from boxeval.errors import Problem, SuiteError
from boxeval.formats import place
from boxeval.formats.later import NOT_YET, REFUSALS
from boxeval.formats.marketplaces import with_marketplaces
from boxeval.formats.paths import normal
from boxeval.formats.patterns import unmatched
from boxeval.formats.place import show
from boxeval.formats.policy import load_policy
from boxeval.formats.script_checks import script_faults
from boxeval.formats.suite_checks import suite_faults, suite_warnings
from boxeval.formats.typed import MAX_PROBLEMS, check
from boxeval.formats.yaml_source import Source, in_order, read_bounded, scan
from boxeval.spec.models import ReplayModel, Script, ScriptModel
from boxeval.spec.policy import Policy
from boxeval.spec.suite import Suite
from boxeval.spec.workspace import WorkspaceKind

DEFAULT_POLICY = "default"


@dataclass(frozen=True, slots=True)
class LoadedSuite:
    """A suite, ready to be planned.

    `scripts` has the script of each model by the model's name, and a task's own script by `task:ID`.
    `policies` has every policy that the suite names, and the default one, by the name that was written.
    `warnings` are about what is allowed and yet surely not meant; `source` knows where each part stands.
    `repositories` has the directories of git workspaces whose `path` is a name for one.
    """

    suite: Suite
    source: Source
    sha256: str
    file: Path
    directory: Path
    scripts: dict[str, Script] = field(default_factory=dict)
    policies: dict[str, Policy] = field(default_factory=dict)
    warnings: tuple[Problem, ...] = ()
    repositories: dict[str, Path] = field(default_factory=dict)


def load_suite(path: Path) -> LoadedSuite:
    """Read and check a suite. Raises `SuiteError` with every problem that was found."""
    shown = place.escaped(str(path))
    try:
        data = read_bounded(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SuiteError([Problem(shown, "", f"suite cannot be read: {reason}")]) from None
    source = scan(data, shown)
    if version := _version_fault(source):
        raise SuiteError([version])
    suite, problems = check(source, Suite, REFUSALS)
    if suite is None:
        raise SuiteError(_bounded(in_order(problems)))
    return complete(suite, problems, source, hashlib.sha256(data).hexdigest(), path)


def complete(suite: Suite, problems: list[Problem], source: Source, sha256: str, path: Path) -> LoadedSuite:
    """Read what a well-typed suite names and check the whole. Raises `SuiteError` with every problem."""
    reader = _Files(source, path.parent)
    suite, unread = with_marketplaces(suite, path.parent)
    scripts, policies = dict(reader.scripts(suite)), dict(reader.policies(suite))
    seen = {problem.path for problem in problems}
    faults = (*suite_faults(suite), *reader.cassettes(suite), *unread)
    found = [source.problem(where, message) for where, message in faults]
    problems += [problem for problem in (*found, *reader.problems) if problem.path not in seen]
    problems = in_order(problems) + reader.foreign
    if problems:
        raise SuiteError(_bounded(problems))
    warnings = [
        source.problem(where, message) for where, message in (*suite_warnings(suite), *_idle_patterns(suite))
    ]
    return LoadedSuite(suite, source, sha256, path, path.parent, scripts, policies, tuple(in_order(warnings)))


class _Files:
    """Reads scripts and policies. `problems` are the suite's own, `foreign` those inside the other files."""

    def __init__(self, source: Source, directory: Path) -> None:
        self.source = source
        self.directory = directory
        self.problems: list[Problem] = []
        self.foreign: list[Problem] = []

    def scripts(self, suite: Suite) -> Iterator[tuple[str, Script]]:
        read: dict[str, Script | None] = {}
        wanted: list[tuple[place.Path, str, str | Script]]
        wanted = [
            (("models", name, "script"), name, model.script)
            for name, model in suite.models.items()
            if isinstance(model, ScriptModel)
        ]
        wanted += [
            (("tasks", index, "runner", "script"), f"task:{task.id}", task.runner.script)
            for index, task in enumerate(suite.tasks)
            if task.runner.script is not None
        ]
        for where, key, script in wanted:
            if isinstance(script, Script):
                for inner, message in script_faults(script):
                    self.problems.append(self.source.problem((*where, *inner), message))
                yield key, script
                continue
            if script not in read:
                read[script] = self.script(where, script)
            if (found := read[script]) is not None:
                yield key, found

    def script(self, where: place.Path, file: str) -> Script | None:
        try:
            source = scan(read_bounded(self.directory / file), place.escaped(file))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            self.problems.append(self.source.problem(where, f"script {show(file)} cannot be read: {reason}"))
            return None
        except SuiteError as error:
            self.foreign += error.problems
            return None
        script, problems = check(source, Script)
        if script is not None:
            problems += [source.problem(inner, message) for inner, message in script_faults(script)]
        self.foreign += in_order(problems)
        return script

    def cassettes(self, suite: Suite) -> Iterator[tuple[place.Path, str]]:
        for name, model in suite.models.items():
            if isinstance(model, ReplayModel) and not (self.directory / model.replay).is_file():
                yield ("models", name, "replay"), f"cassette {show(model.replay)} is no file"

    def policies(self, suite: Suite) -> Iterator[tuple[str, Policy]]:
        wanted: list[tuple[place.Path, str | None]] = [
            ((), DEFAULT_POLICY),
            (("defaults", "policy"), suite.defaults.policy),
        ]
        wanted += [(("matrix", "targets", i, "policy"), t.policy) for i, t in enumerate(suite.matrix.targets)]
        wanted += [(("tasks", i, "policy"), t.policy) for i, t in enumerate(suite.tasks)]
        read: set[str] = set()
        for where, name in wanted:
            if name is None or name in read:
                continue
            read.add(name)
            try:
                yield name, load_policy(name, self.directory)
            except SuiteError as error:
                if all(problem.line for problem in error.problems):
                    self.foreign += error.problems
                else:
                    self.problems += [self.source.problem(where, p.message) for p in error.problems]


def _version_fault(source: Source) -> Problem | None:
    """A suite of another version would only give noise."""
    tree = source.tree
    if not isinstance(tree, dict) or "version" not in tree or tree["version"] == 2:
        return None
    if tree["version"] == 1 and not isinstance(tree["version"], bool):
        return source.problem(("version",), f"suite version 1 {NOT_YET}; it reads version 2")
    return None


def _idle_patterns(suite: Suite) -> Iterator[tuple[place.Path, str]]:
    """Patterns of an inline fixture that match no file of it: a typo, or a wrong case (D15)."""
    for index, task in enumerate(suite.tasks):
        workspace = task.workspace
        if workspace.kind is not WorkspaceKind.INLINE or workspace.setup:
            continue
        paths = [normal(path) for path in (*(workspace.files or {}), *task.verify.files)]
        idle = unmatched(task.verify.forbid_paths, paths)
        for number, pattern in enumerate(task.verify.forbid_paths):
            if pattern in idle:
                where = ("tasks", index, "verify", "forbidPaths", number)
                yield where, f"{show(pattern)} matches no file of the workspace; only new files can"


def _bounded(problems: list[Problem]) -> list[Problem]:
    if len(problems) <= MAX_PROBLEMS:
        return problems
    rest = Problem(problems[0].file, "", f"{len(problems) - MAX_PROBLEMS} more problems are not shown")
    return [*problems[:MAX_PROBLEMS], rest]
