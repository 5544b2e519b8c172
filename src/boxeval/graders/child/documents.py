"""The JSON document in a message: the whole of it, or what is in its only `json` fence (G10)."""

from __future__ import annotations

import re
from typing import Any

from boxeval.rules.json_values import NotJson, parse

_FENCE = re.compile(r" {0,3}(`{3,})[ \t]*([^`\r\n]*?)[ \t]*")
_TRIMMED = (
    "\t\v\f\n\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""White space and line ends of ECMAScript, a byte order mark among them."""


MAX_VALUES = 500_000
"""So many are read well within a child's time. Past that, a void trial would be the candidate's to choose."""


def document(text: str, exact: bool) -> Any:
    """The value of the message's document. With `exact` there is nothing else in it. Raises `NotJson`."""
    trimmed = text.strip(_TRIMMED)
    if (count := sum(map(trimmed.count, "[{,"))) > MAX_VALUES:
        raise NotJson(f"the message has {count} brackets and commas; at most {MAX_VALUES} are read")
    try:
        return parse(trimmed)
    except NotJson as error:
        fences = _fenced(trimmed)
        if not fences:
            raise NotJson(f"the message {error}") from None
    if len(fences) > 1:
        raise NotJson(f"the message has {len(fences)} json fences; one is read")
    content, is_all = fences[0]
    if exact and not is_all:
        raise NotJson("the message has more in it than the json fence")
    try:
        return parse(content.strip(_TRIMMED))
    except NotJson as error:
        raise NotJson(f"the json fence {error}") from None


def _fenced(text: str) -> list[tuple[str, bool]]:
    """The content of each closed `json` fence, and whether it is the whole text."""
    lines = re.split(r"\r\n|\n|\r", text)
    found = []
    opened: tuple[int, str, str] | None = None
    for number, line in enumerate(lines):
        match = _FENCE.fullmatch(line)
        if not match:
            continue
        ticks, info = match.groups()
        if opened is None:
            opened = number, ticks, info
        elif not info and len(ticks) >= len(opened[1]):
            if opened[2].lower() == "json":
                is_all = opened[0] == 0 and number == len(lines) - 1
                found.append(("\n".join(lines[opened[0] + 1 : number]), is_all))
            opened = None
    return found
