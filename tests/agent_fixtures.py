"""A workspace and a home for sessions of the reference agent."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def work(tmp_path: Path) -> Path:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return workspace


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "agent-home"
