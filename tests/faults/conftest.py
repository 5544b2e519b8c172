"""What is left of an engine that was not there."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def unconnected() -> Iterator[None]:
    """Let go of sockets that could not connect: the engine's SDK leaves each open until the garbage is collected.

    A later test of the same process would be blamed for them.
    """
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
