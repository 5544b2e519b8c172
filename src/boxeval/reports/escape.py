"""Makes any text safe to show: what a candidate, a grader or a file name says can draw nothing on a terminal.

The escaped form is one to one, so two different names never look alike: a decoder that knows the three
escapes below gives the text back. Bytes that were no UTF-8 arrive as `\\x80` to `\\xff` already and stay so.
"""

from __future__ import annotations

import re

_INTERESTING = re.compile(r"\\+|[^ -~]")
_LOOKS_ESCAPED = re.compile(r"x[0-7][0-9a-f]|u[0-9a-f]{4}|U[0-9a-f]{8}")
# Printable by category, yet drawn as nothing: joiners, fillers, blanks and variation selectors.
_INVISIBLE = frozenset(
    map(chr, [0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0])
) | frozenset(map(chr, [*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]))


def escape(text: str) -> str:
    """One line of visible characters.

    Controls, bidi marks, zero-width characters, lone surrogates become `\\xNN`, `\\uNNNN` or `\\UNNNNNNNN`. A
    backslash is doubled only where it could be taken for the start of one of these.
    """
    return _INTERESTING.sub(_escaped, text)


def escape_lines(data: bytes | str) -> list[str]:
    """Output of a program as safe lines. Only LF ends a line; a tab becomes four spaces."""
    text = data.decode("utf-8", "backslashreplace") if isinstance(data, bytes) else data
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [escape(line.replace("\t", "    ")) for line in lines]


def _escaped(match: re.Match[str]) -> str:
    found = match[0]
    if found[0] != "\\":
        return found if _is_shown(found) else _code(found)
    follows = match.string[match.end() : match.end() + 1]
    if _LOOKS_ESCAPED.match(match.string, match.end()) or (follows and not _is_shown(follows)):
        return found * 2
    return found


def _is_shown(char: str) -> bool:
    return char.isprintable() and char not in _INVISIBLE


def _code(char: str) -> str:
    number = ord(char)
    if number < 0x80:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
