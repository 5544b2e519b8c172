from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import run_samples as samples
from boxeval.receipts.canonical import MalformedError, canonical, canonical_json, digest, read, strict_json
from boxeval.spec.base import Record, Scalar
from boxeval.spec.plan import Plan


class Small(Record):
    some_name: str | None = None
    value: Scalar = None


def test_rfc_8785_example() -> None:
    """Section 3.2.2 of the RFC, with its numbers and its string."""
    tree = json.loads(
        r"""{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
             "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}"""
    )
    expected = (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )
    assert canonical_json(tree) == expected.encode()


def test_nulls_are_written_and_names_are_the_public_ones() -> None:
    assert canonical(Small()) == b'{"someName":null,"value":null}'
    assert digest(Small()) == hashlib.sha256(b'{"someName":null,"value":null}').hexdigest()


def test_a_record_comes_back_as_it_was() -> None:
    plan = samples.plan(
        samples.task(verify={"assertions": (samples.wants("cost.usd", "lt", 2.0),)}), max_cost_usd=5.0
    )
    assert read(Plan, canonical(plan)) == plan


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"someName":null,"someName":null,"value":null}', "'someName' is there twice"),
        ('{"someName":null,"value":null,"verdict":1}', "verdict"),
        ('{"value":null,"someName":null}', "canonical form"),
        ('{"someName":null, "value":null}', "canonical form"),
        ('{"someName":null,"value":null}\n', "canonical form"),
        ('{"someName":null,"value":1.0}', "canonical form"),
        ('{"someName":null,"value":1e0}', "canonical form"),
        ('{"someName":null,"value":-0}', "canonical form"),
        ('{"someName":"\\u0041","value":null}', "canonical form"),
        ('{"someName":null}', "lacks fields"),
        ('{"some_name":null,"value":null}', "lacks fields"),
        ('{"someName":null,"value":NaN}', "NaN"),
        ('{"someName":null,"value":-Infinity}', "Infinity"),
        ('{"someName":null,"value":1e999}', "out of range"),
        ('{"someName":null,"value":' + "9" * 5000 + "}", "out of range"),
        ('{"someName":null,"value":9007199254740992}', "out of range"),
        ('{"someName":7,"value":null}', "someName"),
        ('{"someName":null,"value":' + "[" * 100_000 + "]" * 100_000 + "}", "nested deeper"),
        ('{"someName":null,"value":' + "[" * 65 + "]" * 65 + "}", "nested deeper"),
        ("", "not JSON"),
        ("\0", "not JSON"),
    ],
)
def test_only_the_canonical_form_is_read(text: str, reason: str) -> None:
    with pytest.raises(MalformedError, match=reason):
        read(Small, text.encode())


def test_bytes_that_are_not_utf_8_and_too_many_bytes_are_refused() -> None:
    with pytest.raises(MalformedError, match="UTF-8"):
        strict_json(b'"\xff"')
    with pytest.raises(MalformedError, match="larger than 3 bytes"):
        strict_json(b"1234", limit=3)


@pytest.mark.parametrize("value", [2**53, -(2**53), 2.0**53, -1e20])
def test_a_number_that_would_not_read_back_is_not_sealed(value: float) -> None:
    with pytest.raises(MalformedError, match=r"too large|safe integer"):
        canonical(Small(value=value))


@given(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
def test_whatever_can_be_sealed_reads_back_to_the_same_bytes(value: Scalar) -> None:
    try:
        data = canonical(Small(value=value))
    except (MalformedError, ValueError):
        return
    assert canonical(read(Small, data)) == data
