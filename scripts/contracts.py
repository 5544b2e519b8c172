"""Prints which promises of tests/contract.toml are claimed by tests (`make contracts`).

Tests are collected, not run; if that fails, it exits 1. Last line: `contracts: N covered, M open, K n/a`.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


class Claims:
    """A pytest plugin that counts the collected tests of each contract id."""

    def __init__(self) -> None:
        self.tests: Counter[str] = Counter()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Count an id once a test, however often its markers name it."""
        for item in session.items:
            self.tests.update({str(i) for mark in item.iter_markers("contract") for i in mark.args})


def table(promises: dict[str, dict[str, str]], tests: Counter[str]) -> list[str]:
    """One line a promise, then the totals."""
    lines, covered, absent = [], 0, 0
    for name, promise in promises.items():
        count = tests[name]
        by = f"{count} test{'s' if count > 1 else ''}"
        if count and (lacks := promise.get("lacks")):
            state = f"in part by {by}, lacks: {lacks}"
        elif count:
            covered += 1
            state = f"covered by {by}"
        elif reason := promise.get("na"):
            absent += 1
            state = f"n/a: {reason}"
        else:
            state = "open"
        lines.append(f"{name:<4} {state:<22} {promise['title']}")
    return [*lines, f"contracts: {covered} covered, {len(promises) - covered - absent} open, {absent} n/a"]


def main() -> int:
    """Collect, count, print."""
    sections = tomllib.loads((ROOT / "tests" / "contract.toml").read_text("utf-8"))
    promises = {name: promise for section in sections.values() for name, promise in section.items()}
    claims, said = Claims(), io.StringIO()
    with contextlib.redirect_stdout(said):
        code = pytest.main(
            ["--collect-only", "-q", "-p", "no:cacheprovider", f"--rootdir={ROOT}", str(ROOT / "tests")],
            [claims],
        )
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        sys.stderr.write(said.getvalue())
        return 1
    sys.stdout.write("\n".join(table(promises, claims.tests)) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
