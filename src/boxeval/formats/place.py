"""Places in a user's file, and how they and foreign text are shown in one line."""

from __future__ import annotations

import json
import re

Step = str | int
Path = tuple[Step, ...]
"""Keys and list indexes from the root of a document to a value."""
Position = tuple[int, int]
"""Line and column, both from 1."""

_SIMPLE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_SHOWN = 80


def dotted(path: Path) -> str:
    """`("tasks", 1, "runner", "kind")` as `tasks[1].runner.kind`; other keys in brackets and quotes."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _SIMPLE.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{json.dumps(plain(step))}]"
    return text


def plain(text: str) -> str:
    """At most 80 characters, with those escaped that a terminal would act on."""
    return escaped(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")


def escaped(text: str) -> str:
    """The whole text, with those characters escaped that a terminal would act on."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def show(text: str) -> str:
    """Foreign text between backticks, short and without control characters."""
    return f"`{plain(text)}`"
