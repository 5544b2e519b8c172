"""One reading of YAML only, with the place of everything. Right values: YAML 1.1 and the 1.2 core schema."""

from __future__ import annotations

import pytest

from boxeval.errors import SuiteError
from boxeval.formats.yaml_source import parse


def refused(text: str | bytes) -> str:
    data = text.encode() if isinstance(text, str) else text
    with pytest.raises(SuiteError) as caught:
        parse(data, "s.yaml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1", 1),
        ("a: -7", -7),
        ("a: +5", 5),
        ("a: 0", 0),
        ("a: 0x1F", 31),
        ("a: 3.10", 3.1),
        ("a: .5", 0.5),
        ("a: 1.5e+3", 1500.0),
        ("a: true", True),
        ("a: False", False),
        ("a: ~", None),
        ("a: null", None),
        ("a:", None),
        ("a: text", "text"),
        ("a: '010'", "010"),
        ('a: "1:30"', "1:30"),
        ("a: 'NO'", "NO"),
        ("a: 1.2.3", "1.2.3"),
        ("a: nope", "nope"),
        ("a: 9007199254740991", 2**53 - 1),
        ("a: |\n  NO\n  010\n", "NO\n010\n"),
        ("a: [1, x, {b: c}]", [1, "x", {"b": "c"}]),
    ],
)
def test_values_that_all_readers_agree_on(text: str, value: object) -> None:
    found = parse(text.encode(), "s.yaml").tree["a"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "value",
    [
        "1:30",
        "190:20:30",
        "010",
        "0o10",
        "0b11",
        "1_000",
        "1e3",
        "12e03",
        "NO",
        "no",
        "yes",
        "On",
        "off",
        "y",
        "N",
        ".inf",
        "-.INF",
        ".nan",
        "2024-01-01",
        "2024-01-01T10:00:00Z",
        "00",
        "0x_1",
        "=",
    ],
)
def test_ambiguous_values_ask_for_quotes_and_name_key_and_value(value: str) -> None:
    """Known failure F9."""
    message = refused(f"top:\n  timeout: {value}\n")
    assert message.startswith(f"s.yaml:2:12: top.timeout: `{value}` is ambiguous in YAML; write it in quotes")


def test_a_number_that_no_reader_of_json_keeps_is_refused() -> None:
    assert "too large" in refused("a: 9007199254740992")
    assert "too large" in refused(f"a: {'9' * 5000}")
    assert "too large" in refused("a: 1.0e+999")


def test_duplicate_keys_name_both_lines() -> None:
    """Known failure F8."""
    assert refused("a: 1\nb: 2\na: 3\n") == "s.yaml:3:1: a: is set twice; the first time in line 1"
    assert "x.z: is set twice; the first time in line 2" in refused("x:\n  z: 1\n  'z': 2\n")


def test_all_problems_come_in_file_order() -> None:
    lines = refused("b: 010\na: NO\na: 1\n").splitlines()
    assert [line.split(":")[1] for line in lines] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: !!python/object:os.system x", "tags are not supported"),
        ("a: !mine x", "tags are not supported"),
        ("1: x", "s.yaml:1:1: key `1` is not read as text; write it in quotes"),
        ("on: x", "key `on` is not read as text"),
        ("? [a]\n: x", "a key must be text"),
        ("base: &b {x: 1}\na:\n  <<: *b", "s.yaml:3:3: a: merge keys (`<<`) are not supported"),
        ("a: 1\n---\nb: 2\n", "s.yaml:2:1: a second document starts here"),
        ("%YAML 1.1\n---\na: 1\n", "directives such as `%YAML` are not supported"),
        ("a: *b", "alias `*b` has no anchor before it"),
        ("a: &a [*a]", "alias `*a` has no anchor before it"),
        ("a:\n\tb: 1", "s.yaml:2:1: a tab cannot indent YAML"),
        ("a: @x", "cannot start a value"),
        ("a: [1, 2", "is not YAML"),
        ('a: "\\ud800"', "is not YAML"),
        ("a: \x07", "s.yaml:1:4: character U+0007 may not stand in YAML"),
        (b"a: b\nc: \xc3\xa9\xff\n", "s.yaml:2:5: byte 0xff is not UTF-8"),
        (b"\xff\xfea\x00", "byte 0xff is not UTF-8"),
    ],
)
def test_what_is_refused(text: str | bytes, said: str) -> None:
    assert said in refused(text)


@pytest.mark.parametrize(
    "text", ["[" * 65 + "]" * 65, "- " * 65 + "x", "[" * 100_000, "- " * 100_000, "{a: " * 5000]
)
def test_deep_nesting_is_refused_without_being_followed(text: str) -> None:
    assert "is nested deeper than 64 levels" in refused(text)


def test_depth_counts_through_aliases() -> None:
    levels = "".join(f"a{n}: &a{n} {'[' * 30}{f'*a{n - 1}' if n else 'x'}{']' * 30}\n" for n in range(4))
    assert "more than 64 levels" in refused(levels)


def test_alias_bombs_are_bounded_and_few_aliases_work() -> None:
    assert parse(b"a: &x [1, 2]\nb: *x\n", "s.yaml").tree == {"a": [1, 2], "b": [1, 2]}
    doubling = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 32))
    assert "more than 100000 values" in refused(doubling)
    assert "more than 64 aliases" in refused("a: &a x\nb: [" + "*a, " * 65 + "]")


def test_a_large_file_is_one_line_and_is_not_parsed() -> None:
    assert refused(b"[" * (10 * 1024 * 1024)) == "s.yaml:1:1: is larger than 1024 KiB, the most that is read"


def test_positions_of_keys_and_values() -> None:
    source = parse("tâche:\n  - id: x\n    run: {a: b}\n".encode(), "s.yaml")
    assert source.position(("tâche", 0, "id")) == (2, 9)
    assert source.position(("tâche", 0, "run", "a")) == (3, 14)
    assert source.key_position(("tâche", 0, "run", "a")) == (3, 11)
    assert source.position(("tâche", 0, "missing")) == (2, 5)


def test_a_byte_order_mark_is_no_part_of_the_first_key() -> None:
    assert parse(b"\xef\xbb\xbfa: 1\n", "s.yaml").tree == {"a": 1}


def test_foreign_text_cannot_draw_on_the_terminal() -> None:
    message = refused('"\\e[2J\\u202e": 1\n"\\e[2J\\u202e": 2\n')
    assert message.isprintable()
