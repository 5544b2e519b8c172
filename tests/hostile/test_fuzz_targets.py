"""A little of `make fuzz`: inputs that each reader takes, with some bytes changed, moved, repeated and cut."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz_seeds import seeds
from fuzz_targets import TARGETS

Edit = tuple[str, int, int, bytes]
EDITS = st.lists(
    st.tuples(
        st.sampled_from(["replace", "insert", "remove", "repeat", "cut"]),
        st.integers(0, 1 << 14),
        st.integers(0, 24),
        st.one_of(
            st.binary(max_size=6), st.sampled_from([b'"', b"{", b"[", b"\xff", b"\0", b"-1", b"1e999", b"\n"])
        ),
    ),
    max_size=6,
)
cached_seeds = cache(seeds)


def edited(data: bytes, edits: list[Edit]) -> bytes:
    for how, at, size, piece in edits:
        at %= len(data) + 1
        head, middle, tail = data[:at], data[at : at + size], data[at + size :]
        data = {
            "replace": head + piece + tail,
            "insert": head + piece + middle + tail,
            "remove": head + tail,
            "repeat": head + middle * 3 + tail,
            "cut": head or data,
        }[how]
    return data


def test_every_target_has_seeds() -> None:
    assert cached_seeds().keys() == TARGETS.keys()


FOUND = [("egress", b"GET Basic dG9rZW46eA=\x80")]
"""Inputs that broke a reader once."""


@pytest.mark.parametrize(("name", "data"), FOUND)
def test_what_was_found_is_mended(name: str, data: bytes) -> None:
    TARGETS[name](data)


@pytest.mark.parametrize("name", TARGETS)
@settings(
    max_examples=25, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
@given(data=st.data())
def test_no_input_ends_in_an_error_without_a_name(name: str, data: st.DataObject) -> None:
    TARGETS[name](edited(data.draw(st.sampled_from(cached_seeds()[name])), data.draw(EDITS)))
