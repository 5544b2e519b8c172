"""What every test stands on: a home of its own, known contract ids, and an engine left as it was found."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

PROMISES = {
    name
    for section in tomllib.loads(Path(__file__).with_name("contract.toml").read_text("utf-8")).values()
    for name in section
}


@pytest.fixture(autouse=True)
def boxeval_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A private HOME and BOXEVAL_HOME for each test, subprocesses included. Returns the latter."""
    for name in list(os.environ):
        if name.startswith(("BOXEVAL_", "XDG_")) or name in {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"}:
            monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("BOXEVAL_HOME", str(home / "boxeval"))
    return home / "boxeval"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A claim on a promise that does not exist is a mistake in the test."""
    wrong = [
        f"{item.nodeid}: {name!r}"
        for item in items
        for mark in item.iter_markers("contract")
        for name in mark.args or ("(empty)",)
        if name not in PROMISES
    ]
    if wrong:
        raise pytest.UsageError("unknown contract id, see tests/contract.toml:\n" + "\n".join(wrong))
