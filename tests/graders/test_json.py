"""`boxeval.json` and `boxeval.output`: documents, pointers, equality, containment (contract G9-G13)."""

from __future__ import annotations

from typing import Any

import pytest

from boxeval.rules.json_values import NoValue, resolve
from grader_fixtures import Grades

RFC_6901 = {
    "foo": ["bar", "baz"],
    "": 0,
    "a/b": 1,
    "c%d": 2,
    "e^f": 3,
    "g|h": 4,
    "i\\j": 5,
    'k"l': 6,
    " ": 7,
    "m~n": 8,
}


@pytest.mark.contract("G9")
@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", RFC_6901),
        ("/foo", ["bar", "baz"]),
        ("/foo/0", "bar"),
        ("/", 0),
        ("/a~1b", 1),
        ("/c%d", 2),
        ("/e^f", 3),
        ("/g|h", 4),
        ("/i\\j", 5),
        ('/k"l', 6),
        ("/ ", 7),
        ("/m~0n", 8),
    ],
)
def test_the_examples_of_rfc_6901(pointer: str, value: Any) -> None:
    assert resolve(RFC_6901, pointer) == value


@pytest.mark.contract("G9")
@pytest.mark.parametrize(
    "pointer",
    [
        "/foo/00",
        "/foo/01",
        "/foo/-",
        "/foo/2",
        "/foo/+1",
        "/foo/1e0",
        "/foo/\u0660",
        "/nope",
        "/foo/bar",
        "//x",
    ],
)
def test_a_pointer_that_leads_nowhere(pointer: str) -> None:
    with pytest.raises(NoValue):
        resolve(RFC_6901, pointer)


@pytest.mark.contract("G9", "G10")
@pytest.mark.parametrize(
    ("text", "configuration", "status"),
    [
        ('{"a": 1}', {"pointer": "/a"}, "passed"),
        ('{"a": null}', {"pointer": "/a"}, "passed"),
        ('{"a": null}', {"pointer": "/a", "equals": None}, "passed"),
        ('{"a": 1}', {"pointer": "/a", "equals": None}, "failed"),
        ('{"a": 1}', {"pointer": "/b"}, "failed"),
        ('{"a": 1}', {"pointer": "/a", "equals": 1.0}, "passed"),
        ('{"a": true}', {"pointer": "/a", "equals": 1}, "failed"),
        ('{"a": 1}', {"pointer": "/a", "equals": True}, "failed"),
        ('{"a": 0}', {"pointer": "/a", "equals": False}, "failed"),
        ('{"a": [true]}', {"equals": {"a": [1]}}, "failed"),
        ('{"b": 2, "a": 1}', {"equals": {"a": 1, "b": 2}}, "passed"),
        ('{"a": 1, "b": 2}', {"equals": {"a": 1}}, "failed"),
        ("[1, 2]", {"equals": [2, 1]}, "failed"),
        ('"1"', {"equals": 1}, "failed"),
        ("12345678901234567890123", {"equals": 5}, "failed"),
        ("9007199254740993", {"equals": 9007199254740992.0}, "failed"),  # not one number, though one double
        ("  \ufeff\u00a0[1]\u2028 ", {}, "passed"),  # what ECMAScript trims
        ("Here:\n```json\n[1]\n```\ndone", {"pointer": "/0"}, "passed"),
        ("Here:\r\n```JSON\r\n[1]\r\n```\r\n", {"pointer": "/0"}, "passed"),
        ("```json\n[1]\n```\n```json\n[2]\n```", {}, "failed"),
        ("```json\n[1]\n```\n```python\n[2]\n```", {}, "passed"),
        ("```\n```json\n[1]\n```", {}, "failed"),  # inside a fence of another kind
        ("````json\n[1]\n```\n````", {}, "failed"),  # three ticks do not close four
        ("```json\n[1]", {}, "failed"),
        ("```json5\n[1]\n```", {}, "failed"),
        ("text ```json [1] ```", {}, "failed"),
        ('{"a": "```json\\n1\\n```"}', {"pointer": "/a"}, "passed"),
        ("prose [1]", {}, "failed"),
        ("[1] [2]", {}, "failed"),
        ("", {}, "failed"),
        ("```json\n[1]\n```", {"exactDocument": True}, "passed"),
        (" \n```json\n[1]\n```\n", {"exactDocument": True}, "passed"),
        (" [1] ", {"exactDocument": True}, "passed"),
        ("Here:\n```json\n[1]\n```", {"exactDocument": True}, "failed"),
        ("```json\n[1]\n```\nbye", {"exactDocument": True}, "failed"),
    ],
)
def test_values(grades: Grades, text: str, configuration: dict[str, Any], status: str) -> None:
    assert grades(text, "json", **configuration) == status


@pytest.mark.contract("G9")
@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        "[Infinity]",
        "-Infinity",
        '{"score": NaN}',
        "1e999",
        "-1e999",
        '{"a": 1, "a": 1}',
        '[{"a": {"b": 1, "b": 2}}]',
        "1" * 5000,
        "0." + "1" * 5000,
        "[" * 100_000,
        "[" * 100_000 + "]" * 100_000,
        '{"a":' * 300 + "1" + "}" * 300,
        "'single'",
        "[1,]",
        "{a: 1}",
        "01",
        "+1",
        "// comment\n1",
        '"tab\there"',
        '"\x00"',
        "\ufeff\ufeffx",
    ],
    ids=lambda text: text[:20],
)
def test_what_is_no_strict_json_fails_with_a_reason(grades: Grades, text: str) -> None:
    """Known failures F1, F7."""
    for grader, configuration in (
        ("json", {}),
        ("schema", {"schema": {}}),
        ("output", {"validJson": True}),
    ):
        verdict = grades.verdict(text, grader, **configuration)
        assert verdict.status.value == "failed"
        assert (verdict.reason or "").startswith("the message")


def test_the_edges_of_what_is_read(grades: Grades) -> None:
    assert grades("[" * 256 + "]" * 256, "json") == "passed"
    assert grades("[" * 257 + "]" * 257, "json") == "failed"
    assert grades("1" * 300, "json") == "passed"
    assert grades("1" * 301, "json") == "failed"
    assert grades('["[[[[" ,' + '"{",' * 300 + "1]", "json") == "passed"


def test_half_a_surrogate_pair_is_defined(grades: Grades) -> None:
    assert grades(r'["\ud800"]', "json", pointer="/0") == "passed"
    verdict = grades.verdict(r'["\ud800"]', "json", pointer="/0", equals="x")
    assert verdict.status.value == "failed"
    assert (verdict.received or "").isprintable()


ITEMS = '{"items": [{"id": 1, "name": "alpha", "tags": ["x", "y"], "in": {"a": 1, "b": 2}}, 7, "text"]}'


@pytest.mark.contract("G11")
@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        ({"id": 1}, "passed"),
        ({"id": True}, "failed"),
        ({"id": 1, "name": "beta"}, "failed"),
        ({"in": {"a": 1}}, "passed"),
        ({"in": {"a": 1, "c": 3}}, "failed"),
        ({"tags": ["y"]}, "passed"),
        ({"tags": ["z"]}, "failed"),
        ({}, "passed"),
        (7, "passed"),
        (8, "failed"),
        ({"name": {"$regex": "^al"}}, "passed"),
        ({"name": {"$regex": "^AL"}}, "failed"),
        ({"id": {"$regex": "1"}}, "failed"),  # a number is no string
        ({"$regex": "^te"}, "passed"),
        ({"name": {"$regex": "^al", "x": 1}}, "failed"),  # not its only key: a plain object
        ({"tags": [{"$regex": "^y$"}]}, "passed"),
    ],
)
def test_containment(grades: Grades, wanted: Any, status: str) -> None:
    assert grades(ITEMS, "json", pointer="/items", contains=wanted) == status


@pytest.mark.contract("G2", "G11")
def test_containment_needs_an_array_and_good_patterns(grades: Grades) -> None:
    assert grades('{"a": {"b": 1}}', "json", pointer="/a", contains={"b": 1}) == "failed"
    [(path, said)] = grades.faults("json", contains=[{"a": {"$regex": "("}}])
    assert path == ("contains",) and "egular expression" in said


@pytest.mark.contract("G13")
@pytest.mark.parametrize(
    ("text", "configuration", "reason"),
    [
        (
            "{",
            {"validJson": True, "schema": {"type": "array"}, "expectExact": "x"},
            "the message is not JSON",
        ),
        (
            "{}",
            {"schema": {"type": "array"}, "jsonPath": "/a", "expectExact": "x"},
            "does not fit the schema",
        ),
        ("{}", {"jsonPath": "/a", "expectExact": "x"}, '"/a" leads nowhere'),
        ('{"a": 1}', {"jsonPath": "/a", "expectJson": 2, "expectExact": "x"}, "the value at '/a' is another"),
        ('{"a": 1}', {"jsonPath": "/a", "expectExact": "x"}, "the text is another"),
        ("ab", {"expectExact": "ab ", "expectRegex": "c"}, "the text is another"),
        ("ab", {"expectRegex": "c", "notRegex": "a"}, "the pattern does not match"),
        ("ab", {"expectRegex": "b", "notRegex": "a"}, "the pattern matches"),
    ],
)
def test_output_asserts_in_order(
    grades: Grades, text: str, configuration: dict[str, Any], reason: str
) -> None:
    verdict = grades.verdict(text, "output", **configuration)
    assert verdict.status.value == "failed"
    assert (verdict.reason or "").startswith(reason)


@pytest.mark.contract("G13")
@pytest.mark.parametrize(
    ("text", "configuration", "status"),
    [
        ("line\n", {"expectExact": "line\n"}, "passed"),
        ("line\n", {"expectExact": "line"}, "failed"),  # untrimmed
        ("a\nB", {"expectRegex": "^b$", "flags": "i"}, "passed"),
        ("a\nB", {"notRegex": "^b$", "flags": "i"}, "failed"),
        ('[{"a": 1}]', {"jsonPath": "", "containsJson": {"a": 1}, "notRegex": "b"}, "passed"),
        ("", {"expectExact": ""}, "passed"),
        ("0", {"jsonPath": "", "expectJson": False}, "failed"),
        ("null", {"jsonPath": "", "expectJson": None}, "passed"),
    ],
)
def test_output(grades: Grades, text: str, configuration: dict[str, Any], status: str) -> None:
    assert grades(text, "output", **configuration) == status


@pytest.mark.contract("G10")
def test_a_document_of_too_many_values_fails_and_is_no_fault_of_the_grader(grades: Grades) -> None:
    """Reading 8 MiB of empty arrays takes longer than a child has, and what it does not finish is void."""
    few = "[" + "[]," * 1000 + "7]"
    assert grades(few, "json", pointer="/1000", equals=7) == "passed"
    verdict = grades.verdict("[" + "[]," * 2_700_000 + "7]", "json", pointer="/1", equals=7)
    assert verdict.status.value == "failed"
    assert "at most 500000 are read" in (verdict.reason or "")
