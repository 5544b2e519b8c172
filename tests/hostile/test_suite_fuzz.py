"""Whatever a file holds, reading it ends in a suite or in one of our errors."""

from __future__ import annotations

import contextlib
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from boxeval.errors import FixtureError, SuiteError
from boxeval.formats.fixtures import read_fixture
from boxeval.formats.suite_v2 import load_suite
from boxeval.spec.workspace import Workspace
from suite_samples import RIGHT

pytestmark = pytest.mark.slow

FUZZ = settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(
        ["010", "NO", "1:30", "../x", "/", "\0", "m", "scripted", "git", "a" * 300, "2024-01-01"]
    ),
)
keys = st.one_of(
    st.text(max_size=6),
    st.sampled_from(
        ["kind", "files", "path", "script", "turns", "calls", "text", "steps", "id", "env", "str", "0"]
    ),
)
trees: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=8,
)


def read(file: Path) -> None:
    try:
        load_suite(file)
    except SuiteError as error:
        assert error.problems
        assert all(problem.message and str(problem).isprintable() for problem in error.problems)


@FUZZ
@given(data=st.binary(max_size=300))
def test_any_bytes(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "s.yaml").write_bytes(data)
    read(tmp_path / "s.yaml")


@FUZZ
@given(text=st.text(alphabet="abn01:-{}[]&*!|>'\"#%@,. \n\t?~<=", max_size=80))
def test_any_text_of_yamls_own_characters(tmp_path: Path, text: str) -> None:
    (tmp_path / "s.yaml").write_text(text)
    read(tmp_path / "s.yaml")


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        found += places(value, (*path, key))
    return found


PLACES = places(yaml.safe_load(RIGHT))


@FUZZ
@given(changes=st.lists(st.tuples(st.sampled_from(PLACES), trees), min_size=1, max_size=3))
def test_any_value_at_any_place_of_a_suite(
    tmp_path: Path, changes: list[tuple[tuple[Any, ...], Any]]
) -> None:
    tree = yaml.safe_load(RIGHT)
    for path, value in changes:
        place = tree
        with contextlib.suppress(KeyError, IndexError, TypeError, AttributeError):
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = value
    (tmp_path / "s.yaml").write_text(json.dumps(tree))
    read(tmp_path / "s.yaml")


@FUZZ
@given(edits=st.lists(st.tuples(st.integers(0, 2047), st.integers(0, 255)), min_size=1, max_size=6))
def test_any_bytes_changed_in_an_archive(tmp_path: Path, edits: list[tuple[int, int]]) -> None:
    with tarfile.open(tmp_path / "t.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        for name in ("é", "b"):
            tar.addfile(tarfile.TarInfo(name))
    data = bytearray((tmp_path / "t.tar").read_bytes())
    for position, value in edits:
        data[position] = value
        block = position // 512 * 512
        checksum = sum(data[block : block + 148]) + 256 + sum(data[block + 156 : block + 512])
        data[block + 148 : block + 156] = b"%06o\0 " % checksum
    (tmp_path / "t.tar").write_bytes(data)
    with contextlib.suppress(FixtureError):
        list(read_fixture(Workspace.model_validate({"kind": "archive", "path": "t.tar"}), tmp_path).entries())


@pytest.mark.parametrize("name", ["a\nb.yaml", "\x1b[2J.yaml", "\u202e.yaml"])
def test_a_files_own_name_cannot_draw_on_the_terminal(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("x: 1")
    read(tmp_path / name)
