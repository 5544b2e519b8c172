"""A small right suite, and one change to it at a time."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from boxeval.errors import SuiteError
from boxeval.formats.suite_v2 import LoadedSuite, load_suite

RIGHT = """
version: 2
suite: {id: small, title: Small, visibility: local}
matrix: {targets: [{id: one, model: m}]}
models: {m: {script: {turns: [{text: done}]}}}
tasks:
  - id: first
    workspace: {kind: inline, files: {a.txt: hello}}
    runner: {kind: external-command, command: "true"}
    verify: {commands: ["test -f a.txt"]}
"""


def changed(*changes: tuple[str, object]) -> str:
    """The right suite with values set at paths such as `tasks.0.id`; `None` takes a key away."""
    tree = yaml.safe_load(RIGHT)
    for path, value in changes:
        *parents, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        place = tree
        for step in parents:
            place = place.setdefault(step, {}) if isinstance(place, dict) else place[step]
        if value is None:
            del place[last]
        else:
            place[last] = deepcopy(value)
    return yaml.safe_dump(tree, sort_keys=False)


def load(directory: Path, text: str | bytes) -> LoadedSuite:
    """Load a suite from a file made for it."""
    file = directory / "s.yaml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return load_suite(file)


def problems(directory: Path, text: str | bytes) -> list[str]:
    """The problems of a suite, each as `path: message`; places in the file must be there and in order."""
    with pytest.raises(SuiteError) as caught:
        load(directory, text)
    found = caught.value.problems
    assert all(problem.line >= 1 and problem.column >= 1 for problem in found)
    assert all(str(problem).isprintable() for problem in found)
    return [f"{problem.path}: {problem.message}" if problem.path else problem.message for problem in found]
