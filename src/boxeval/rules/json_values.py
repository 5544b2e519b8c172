"""JSON as graders read it: one parser that refuses what parsers disagree on, pointers, equality, containment.

Imports nothing of boxeval's and nothing slow: it also runs in the child that grades messages, and in boxes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, NoReturn

MAX_DEPTH = 256
MAX_DIGITS = 300
"""Of one number, so that every one fits a double."""
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]', re.DOTALL)
_INDEX = re.compile(r"0|[1-9][0-9]*")
_ESCAPE = re.compile(r"~(?![01])")
_SHOWN = 60


class NotJson(ValueError):
    """The text is no JSON that every reader takes for the same value; says why."""


class NoValue(LookupError):
    """A pointer that leads nowhere; says where it ends."""


def parse(text: str) -> Any:
    """The value of a JSON text. Raises `NotJson`.

    Refused beside what is no JSON: NaN and infinities, also by overflow (`1e999`), a key that is there twice, numbers
    of more than MAX_DIGITS characters, more than MAX_DEPTH levels.
    """
    _check_depth(text)
    try:
        return json.loads(
            text,
            object_pairs_hook=_unique,
            parse_int=_integer,
            parse_float=_finite,
            parse_constant=_no_constant,
        )
    except json.JSONDecodeError as error:
        raise NotJson(f"is not JSON: {error.msg} at character {error.pos}") from None


def _check_depth(text: str) -> None:
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for found in _BRACKETS.finditer(text):
        sign = found.group()
        depth += (sign in "[{") - (sign in "]}")
        if depth > MAX_DEPTH:
            raise NotJson(f"is nested deeper than {MAX_DEPTH} levels at character {found.start()}")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise NotJson(f"has the key {_shown(name)} twice in one object")
            seen.add(name)
    return fields


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise NotJson(f"has a number of {len(text)} digits; at most {MAX_DIGITS} are read")
    return int(text)


def _finite(text: str) -> float:
    if len(text) > MAX_DIGITS:
        raise NotJson(f"has a number of {len(text)} characters; at most {MAX_DIGITS} are read")
    number = float(text)
    if not math.isfinite(number):
        raise NotJson(f"has the number {text[:20]}, which is out of range")
    return number


def _no_constant(name: str) -> NoReturn:
    raise NotJson(f"has {name}, which is not JSON")


def pointer_fault(pointer: str) -> str | None:
    """Why a text is no JSON Pointer (RFC 6901); None if it is one."""
    if pointer and not pointer.startswith("/"):
        return "is no JSON Pointer; it is empty or starts with `/`, such as /items/0"
    return "has `~` without `0` or `1` after it" if _ESCAPE.search(pointer) else None


def resolve(document: Any, pointer: str) -> Any:
    """The value that a JSON Pointer leads to. Raises `NoValue`."""
    value, place = document, ""
    for part in pointer.split("/")[1:]:
        token = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and token in value:
            value = value[token]
        elif (
            isinstance(value, list)
            and _INDEX.fullmatch(token)
            and len(token) < 16
            and int(token) < len(value)
        ):
            value = value[int(token)]
        else:
            raise NoValue(
                f"{_shown(pointer)} leads nowhere: {kind(value)} at {_shown(place)} has no {_shown(token)}"
            )
        place += f"/{part}"
    return value


def equal(one: Any, other: Any) -> bool:
    """Whether two values are the same. A boolean is no number, and 1 is 1.0."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return kind(one) == kind(other) and bool(one == other)


def has_at_least(value: Any, wanted: Any, matches: Callable[[str, str], bool] | None = None) -> bool:
    """Recursive subset: every key of a wanted object is there with at least its value, every member of a wanted
    array is had by some member, everything else is equal.

    With `matches(pattern, text)`, an object whose only key is `$regex` wants a string that its pattern matches.
    """
    if isinstance(wanted, dict):
        if matches and is_pattern(wanted):
            return isinstance(value, str) and matches(wanted["$regex"], value)
        return isinstance(value, dict) and all(
            key in value and has_at_least(value[key], inner, matches) for key, inner in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(value, list) and all(
            any(has_at_least(member, inner, matches) for member in value) for inner in wanted
        )
    return equal(value, wanted)


def is_pattern(value: Any) -> bool:
    """Whether a wanted value is `{$regex: PATTERN}`."""
    return isinstance(value, dict) and value.keys() == {"$regex"} and isinstance(value["$regex"], str)


def kind(value: Any) -> str:
    """The JSON type, in words."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    names = {dict: "object", list: "array", str: "string", int: "number", float: "number"}
    return names[type(value)]


def shown(value: Any, limit: int = 200) -> str:
    """A value as JSON for people, at most `limit` characters, without a rendering of the whole."""
    text = ""
    for piece in json.JSONEncoder(ensure_ascii=False).iterencode(value):
        text += piece
        if len(text) > limit:
            return text[: limit - 1] + "…"
    return text


def _shown(text: str) -> str:
    return json.dumps(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")
