"""Test runners that a lint knows: how they are called, what a candidate may plant for them, and what mends that."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

PYTHON = r"(?:\S*/)?python[0-9.]*"
_BEFORE = r"(?:exec|time|env|timeout\s+\S+|(?:poetry|uv|pipenv|hatch)\s+run|\w+=\S*)\s+"
_START = rf"(?:^|[;&|(])\s*(?:{_BEFORE})*"
"""Where a command begins, past what may stand before its name."""


@dataclass(frozen=True, slots=True)
class Runner:
    """A test runner: how it is called, and files that would change what it does, each with what makes it harmless."""

    name: str
    called: re.Pattern[str]
    plants: Mapping[str, str | None]
    mend: str


RUNNERS = (
    Runner(
        "pytest",
        re.compile(rf"{_START}(?:\S*/)?(?:pytest|py\.test)(?=\s|$)|{PYTHON}\s.*-m\s*pytest\b", re.M),
        {
            "conftest.py": r"--noconftest\b",
            "pytest.ini": r"\s-c[\s=]|--config-file\b",
            "planted.dist-info/entry_points.txt": rf"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1|{PYTHON}\s+-\w*[IP]",
        },
        "run it as `PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 python3 -P -m pytest -c /dev/null --noconftest TESTS`",
    ),
    Runner(
        "unittest",
        re.compile(rf"{PYTHON}\s.*-m\s*unittest\b"),
        {"unittest.py": rf"{PYTHON}\s+-\w*[IP]"},
        "run a test file of `verify.files` with `python3 -I`",
    ),
    Runner(
        "npm",
        re.compile(r"\b(?:npm|yarn|pnpm)\s+(?:run\s+)?(?:test|t)\b"),
        {"package.json": None},
        "call the runner itself, with a configuration of `verify.files`",
    ),
    Runner(
        "jest",
        re.compile(r"\b(?:npx\s+)?(?:jest|vitest|mocha)\b"),
        {"package.json": r"--config\b|\s-c[\s=]"},
        "name a configuration of `verify.files` with `--config`",
    ),
    Runner(
        "make",
        re.compile(r"\bmake\s+(?:\S+\s+)*(?:test|check)\b"),
        {"Makefile": r"\s-f\s"},
        "name a makefile of `verify.files`",
    ),
    Runner(
        "tox",
        re.compile(r"(?:^|[\s;&|(])tox(?=\s|$)", re.M),
        {"tox.ini": r"\s-c\s"},
        "name a configuration of `verify.files` with `-c`",
    ),
    Runner(
        "nox",
        re.compile(r"(?:^|[\s;&|(])nox(?=\s|$)", re.M),
        {"noxfile.py": r"\s-f\s"},
        "name a file of `verify.files` with `-f`",
    ),
    Runner(
        "cargo test",
        re.compile(r"\bcargo\s+(?:\S+\s+)*test\b"),
        {"build.rs": None},
        "put `Cargo.toml` and tests into `verify.files`",
    ),
    Runner(
        "go test", re.compile(r"\bgo\s+test\b"), {"planted_test.go": None}, "list the test files that count"
    ),
)
