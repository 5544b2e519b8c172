"""What of the operator's machine no box may see, whatever a policy mounts or a workspace copies (G31)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from boxeval.errors import Problem, SuiteError, UsageError
from boxeval.formats.fixtures import Fixture, GitSource
from boxeval.formats.protected import ProtectedRoots
from boxeval.formats.suite_v2 import LoadedSuite
from boxeval.settings import PACKAGE, Settings
from boxeval.spec.suite import Task

CREDENTIALS = (
    *(".aws", ".azure", ".claude", ".codex", ".config", ".docker", ".gemini", ".git-credentials", ".gnupg"),
    *(".kube", ".netrc", ".npmrc", ".pypirc", ".ssh"),
)
"""In a home, where tools keep what they log in with."""


def own_places(settings: Settings) -> list[tuple[Path, str]]:
    """Places that hold boxeval, its keys and results, or credentials, with the words for each."""
    home = Path("~").expanduser()
    return [
        (PACKAGE, "boxeval itself"),
        (settings.data_dir, "boxeval's data directory"),
        (settings.cache_dir, "boxeval's cache directory"),
        *((home / name, f"~/{name}") for name in CREDENTIALS),
    ]


def refuse_mounts(loaded: LoadedSuite, settings: Settings, *more: tuple[Path | None, str]) -> None:
    """Raise `SuiteError` for a policy that mounts such a place, the suite's own file or one of `more`."""
    given = [(place, name) for place, name in more if place is not None]
    roots = ProtectedRoots.of((), [*own_places(settings), (loaded.file, "the suite file"), *given])
    faults = {name: roots.mounts_fault(policy.mounts) for name, policy in loaded.policies.items()}
    if problems := [Problem(str(loaded.file), f"policy {name}", f) for name, f in faults.items() if f]:
        raise SuiteError(problems)


def refuse_keys(
    loaded: LoadedSuite, tasks: Iterable[Task], read: Mapping[str, Fixture | GitSource], settings: Settings
) -> None:
    """Raise `UsageError` for a workspace that is a copy of the keys which sign runs: whoever has them can forge one."""
    keys = settings.keys_dir.resolve()
    for task in tasks:
        source, path = read[task.id], task.workspace.path
        if not isinstance(source, Fixture) or path is None:
            continue
        place = (loaded.directory / path).resolve()
        holds = place.is_relative_to(keys)
        if not holds and keys.is_relative_to(place):
            inner = f"{keys.relative_to(place)}/".encode()
            holds = any(entry.path.startswith(inner) for entry in source.entries())
        if holds:
            raise UsageError(
                f"task {task.id}: its workspace would hold boxeval's keys in {keys}; leave them out with "
                "`workspace.excludes`, or keep them elsewhere with BOXEVAL_HOME"
            )
