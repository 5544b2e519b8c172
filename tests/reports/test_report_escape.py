"""One function makes any text safe, and no two texts look the same afterwards."""

from __future__ import annotations

import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxeval.reports.escape import escape, escape_lines

ESCAPED = re.compile(r"\\x([0-7][0-9a-f])|\\u([0-9a-f]{4})|\\U([0-9a-f]{8})")


def decode(shown: str) -> str:
    """Written from the rule, not from the code: an odd run of backslashes before a code starts an escape."""
    out, at = [], 0
    while at < len(shown):
        run = re.compile(r"\\*").match(shown, at)
        assert run
        count = len(run[0])
        if count and (code := ESCAPED.match(shown, run.end() - 1)):
            out.append("\\" * (count // 2))
            at = run.end()
            if count % 2:
                out.append(chr(int(code[1] or code[2] or code[3], 16)))
                at = code.end()
            continue
        out.append(run[0] + shown[run.end() : run.end() + 1])
        at = run.end() + 1
    return "".join(out)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, ünïcode, 日本", "plain text, ünïcode, 日本"),
        ("a\nb", "a\\x0ab"),
        ("a\\nb", "a\\nb"),
        ("a\\x0ab", "a\\\\x0ab"),
        ("\x1b[2J\x1b[H", "\\x1b[2J\\x1b[H"),
        ("\x1b]8;;http://x\x07y", "\\x1b]8;;http://x\\x07y"),
        ("good\rbad", "good\\x0dbad"),
        ("\x9b31m", "\\u009b31m"),
        ("a\u202eb", "a\\u202eb"),
        ("a\u200bb\ufeff", "a\\u200bb\\ufeff"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("\\xff", "\\xff"),
        ("C:\\users\\x", "C:\\users\\x"),
        ("\\\n", "\\\\\\x0a"),
    ],
)
def test_escape_is_visible(text: str, shown: str) -> None:
    assert escape(text) == shown


TRICKY = st.text(alphabet=st.sampled_from("\\\\xuU0afe1\n\x1b\u202e\u00e9"), max_size=20)


@given(st.one_of(TRICKY, st.text(alphabet=st.characters(exclude_categories=()), max_size=30)))
def test_escape_is_one_to_one(text: str) -> None:
    assert decode(escape(text)) == text


def test_every_character_that_draws_nothing_or_steers_is_escaped() -> None:
    for number in range(sys.maxunicode + 1):
        char = chr(number)
        if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"} or unicodedata.bidirectional(
            char
        ) in {
            "LRE",
            "RLE",
            "PDF",
            "LRO",
            "RLO",
            "LRI",
            "RLI",
            "FSI",
            "PDI",
        }:
            assert escape(char).isascii(), hex(number)


def test_lines_of_output() -> None:
    assert escape_lines(b"one\ttab\n\xff\xfe\nlast") == ["one    tab", "\\xff\\xfe", "last"]
    assert escape_lines("a\u2028b\x0cc\n") == ["a\\u2028b\\x0cc"]
    assert escape_lines(b"") == []
