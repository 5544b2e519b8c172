"""The runtime configuration file: environment and readable directories of case runs, all checked (G31-G33, G75)."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import rfc8785

from boxeval.errors import FixtureError, SuiteError
from boxeval.formats.faults import Fault, env_faults
from boxeval.formats.fixtures import Fixture
from boxeval.formats.host_files import read_record
from boxeval.formats.mounts import host_mount_points, source_fault, target_fault
from boxeval.formats.paths import inner_fault
from boxeval.formats.place import show
from boxeval.formats.protected import ProtectedRoots
from boxeval.formats.seeds import RESERVED, Tree, joined, read_seed
from boxeval.formats.yaml_source import in_order
from boxeval.spec.policy import ReadOnlyMount
from boxeval.spec.runtime import Role, RuntimeConfiguration

MAX_BYTES = 64 * 1024
RUNTIME_DIRECTORY = "/home/agent/.runtime"
_OWNED = re.compile(
    "HOME|USER|LOGNAME|SHELL|PWD|OLDPWD|TMPDIR|TMP|TEMP|TERM|CI|TZ|LANG|IFS|ENV|BASH_ENV|SHELLOPTS|BASHOPTS|PS4|"
    "PROMPT_COMMAND|ZDOTDIR|CODEX_HOME|CLAUDE_CONFIG_DIR|UV_OFFLINE|PYTHONSTARTUP|PYTHONPATH|PYTHONHOME|NODE_OPTIONS|"
    "PERL5OPT|RUBYOPT|JAVA_TOOL_OPTIONS|(LD|DYLD|BOXEVAL|SEVRO|GIT|BASH_FUNC)_.*"
)
"""Names that boxeval sets itself, or that make a shell or a program load what it was not told to."""
_SLOT = re.compile(r"\{\{(sevro|boxeval)\.runtime\}\}")


@dataclass(frozen=True, slots=True)
class Runtime:
    """What a runtime configuration comes to.

    `seeds` has the files of the runtime directory by role. `host_options` are what graders are shown of the candidate's
    home, as options of its host. `digest` is over its content, values of variables and files of seeds included.
    """

    env: dict[str, str]
    mounts: tuple[ReadOnlyMount, ...]
    digest: str | None
    seeds: Mapping[Role, Fixture] = field(default_factory=dict)
    host_options: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


NO_RUNTIME = Runtime({}, (), None)


def load_runtime(
    path: Path,
    environ: Mapping[str, str],
    is_credential: Callable[[str], bool],
    protected: ProtectedRoots,
    home: Path,
) -> Runtime:
    """Read and resolve the file. Raises `SuiteError` with everything that is refused."""
    config, source = read_record(path, "runtime configuration", MAX_BYTES, RuntimeConfiguration)
    problems = [
        source.problem(where, message) for where, message in _env_faults(config, environ, is_credential)
    ]
    problems += [source.problem(where, message) for where, message in _home_faults(config)]
    env = _environment(config, environ)
    problems += [
        source.problem(("environment", "set"), f"{'.'.join(map(str, p))}: {m}") for p, m in env_faults(env)
    ]
    seeds, faults = _seeds(config, path.parent, home, protected)
    problems += [source.problem(where, message) for where, message in faults]
    mounts: list[ReadOnlyMount] = []
    points = host_mount_points()
    for where, text, optional in _roots(config):
        place = _expanded(text, path.parent, home)
        if optional and not os.path.lexists(place):
            continue
        fault = source_fault(str(place), points) or protected.fault(place)
        target = str(place)
        fault = fault or target_fault(target, [mount.target for mount in mounts])
        if fault:
            problems.append(source.problem(where, fault))
        else:
            mounts.append(ReadOnlyMount(source=str(place.resolve()), target=target))
    if problems:
        raise SuiteError(in_order(problems))
    content = config.model_dump(mode="json", exclude={"format", "runtime"})
    content |= {"effective": env, "seeds": {role: fixture.digest for role, fixture in seeds.items()}}
    digest = hashlib.sha256(rfc8785.dumps(content)).hexdigest()
    notes: tuple[str, ...] = ("the runtime configuration's PATH is not used: boxes have that of their image",)
    shown = {"transcripts": config.native_transcripts, "artifacts": config.candidate_artifacts}
    options = {name: value for name, value in shown.items() if value}
    if "PATH" not in config.environment.inherit:
        notes = ()
    return Runtime(env, tuple(mounts), digest, seeds, options, notes)


def _home_faults(config: RuntimeConfiguration) -> Iterator[Fault]:
    for name, value in (("nativeGoal", config.hooks.native_goal), ("plugins", config.hooks.plugins)):
        if value:
            yield (
                ("hooks", name),
                "would change how the candidate runs, and the condition is `passive` always",
            )
    for name, path in config.candidate_artifacts.items():
        if fault := inner_fault(path):
            yield ("candidateArtifacts", name), fault.replace("the workspace", "the candidate's home")


def _seeds(
    config: RuntimeConfiguration, directory: Path, home: Path, protected: ProtectedRoots
) -> tuple[dict[Role, Fixture], list[Fault]]:
    """The seeds of each role as one fixture, and what is wrong with them."""
    found: dict[str, Tree] = {}
    faults: list[Fault] = []
    seeds = config.runtime.seed_directories
    for index, seed in enumerate(seeds):
        where = ("runtime", "seedDirectories", index)
        place = _expanded(seed.source, directory, home)
        if seed.target in RESERVED or seed.target in found:
            faults.append(((*where, "target"), f"{show(seed.target)} is taken"))
        elif fault := protected.fault(place):
            faults.append(((*where, "source"), fault))
        else:
            try:
                found[seed.target] = read_seed(place, show(seed.source))
            except FixtureError as error:
                faults.append(((*where, "source"), str(error)))
    named: dict[Role, dict[str, Tree]] = {}
    for seed in seeds:
        for role in seed.roles:
            if tree := found.get(seed.target):
                named.setdefault(role, {})[seed.target] = tree
    return {role: joined(trees) for role, trees in sorted(named.items())}, faults


def _env_faults(
    config: RuntimeConfiguration, environ: Mapping[str, str], is_credential: Callable[[str], bool]
) -> Iterator[Fault]:
    inherit = config.environment.inherit
    named: list[tuple[tuple[str | int, ...], str]] = []
    named += [(("environment", "inherit", n), name) for n, name in enumerate(inherit)]
    named += [(("environment", "set", name), name) for name in config.environment.set]
    for where, name in named:
        if name == "PATH":
            if where[1] == "set":
                yield where, "boxes have the PATH of their image"
        elif _OWNED.fullmatch(name):
            yield where, f"{show(name)} is boxeval's own, or steers a shell or loader"
        elif is_credential(name):
            yield where, f"{show(name)} is named like a credential; none ever enters a box"
        elif where[1] == "inherit" and name not in environ:
            yield where, f"{show(name)} is not set in boxeval's environment"
        elif where[1] == "inherit" and name in inherit[: int(where[2])]:
            yield where, f"{show(name)} is named twice"


def _environment(config: RuntimeConfiguration, environ: Mapping[str, str]) -> dict[str, str]:
    inherited = {
        name: environ[name] for name in config.environment.inherit if name != "PATH" and name in environ
    }
    chosen = {name: value for name, value in config.environment.set.items() if name != "PATH"}
    return {name: _SLOT.sub(RUNTIME_DIRECTORY, value) for name, value in (inherited | chosen).items()}


def _roots(config: RuntimeConfiguration) -> Iterator[tuple[tuple[str | int, ...], str, bool]]:
    files = config.filesystem
    for index, text in enumerate(files.read_only_roots):
        yield ("filesystem", "readOnlyRoots", index), text, False
    for index, text in enumerate(files.optional_read_only_roots):
        yield ("filesystem", "optionalReadOnlyRoots", index), text, True


def _expanded(text: str, directory: Path, home: Path) -> Path:
    if text.startswith("~/"):
        return home / text[2:]
    return Path(os.path.normpath(directory.absolute() / text))
