"""A running gateway, for any test."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from boxeval.gateway.server import Gateway


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with tempfile.TemporaryDirectory() as directory, Gateway(Path(directory) / "gateway.sock") as running:
        yield running
