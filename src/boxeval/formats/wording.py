"""Pydantic's errors in plain words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from boxeval.formats.place import show
from boxeval.spec.metrics import did_you_mean

WANTED = {
    "string_type": "str",
    "int_type": "int",
    "int_from_float": "int",
    "float_type": "float",
    "bool_type": "bool",
    "tuple_type": "list",
    "list_type": "list",
    "dict_type": "dict",
    "model_type": "dict",
    "model_attributes_type": "dict",
}
"""Errors of type, and the branch name of the type that was wanted."""

_WORDS = {"str": "text", "int": "a whole number", "float": "a number", "bool": "true or false"}
_PATTERNS = {
    "A-Za-z0-9._-": "may have only letters, digits, `.`, `_` and `-`",
    "A-Za-z_": "must be a name of letters, digits and `_` that does not start with a digit",
    "0[0-7]{3}": 'must be an octal mode in quotes, such as "0644"',
    "{40}": "must be a full commit id of 40 or 64 hexadecimal digits",
    "^/": "must be an absolute path",
}
"""Part of a pattern, and what it means."""


def shape(value: object) -> str:
    """What a plain value is: mapping, list, text, bool, number or null."""
    if isinstance(value, bool):
        return "bool"
    names: dict[type, str] = {dict: "mapping", list: "list", str: "text", int: "number", float: "number"}
    return names.get(type(value), "null")


def branch_shape(tag: str) -> str:
    """The shape that a branch of a union takes, by the name that pydantic gives it."""
    if tag.startswith(("list", "tuple")):
        return "list"
    shapes = {"str": "text", "constrained-str": "text", "int": "number", "float": "number", "bool": "bool"}
    return shapes.get(tag, "mapping")


def wrong_type(branches: list[str], value: object, unquoted: str | None) -> str:
    """Says what was wanted and what was found; a number where text was meant asks for quotes."""
    words: list[str] = []
    for tag in branches:
        if tag == "int" and "float" in branches:
            continue
        word = _WORDS.get(tag) or ("a list" if branch_shape(tag) == "list" else "a mapping")
        if word not in words:
            words.append(word)
    wanted = " or ".join(words)
    if value is None:
        return f"is empty; it must be {wanted}, or leave the key out"
    if "text" in words and unquoted is not None and not isinstance(value, str):
        return f'must be {wanted}, and {show(unquoted)} is not; write it in quotes: "{unquoted}"'
    found = {"mapping": "a mapping", "list": "a list", "text": "text", "bool": "true or false"}
    if isinstance(value, str):
        plain = (
            "; write it without quotes" if "number" in wanted and re.fullmatch(r"-?[0-9.]+", value) else ""
        )
        return f"must be {wanted}, not {show(value)}{plain}"
    return f"must be {wanted}, not {found.get(shape(value)) or show(unquoted or str(value))}"


def tag(value: object, context: Mapping[str, Any]) -> str:
    """Of a value whose kind is named by one of its keys, and that has none or an unknown one."""
    if not isinstance(value, dict):
        return wrong_type(["dict"], value, None)
    key, known = "grader", re.findall(r"'([^']*)'", str(context.get("expected_tags", "")))
    if key not in value:
        return f"key `{key}` is missing"
    name = str(value[key])
    listed = ", ".join(f"`{one}`" for one in known)
    return f"{key} {show(name)} is not known{did_you_mean(name, known)} (known: {listed})"


def message(kind: str, context: Mapping[str, Any], value: object, otherwise: str = "is wrong") -> str:
    """One line for an error that is not of type. `otherwise` is pydantic's own message."""
    if kind in ("enum", "literal_error"):
        return _one_of(str(context.get("expected", "")), value)
    if kind == "string_pattern_mismatch":
        pattern = str(context["pattern"])
        said = next((text for part, text in _PATTERNS.items() if part in pattern), f"must match {pattern}")
        return f"{said}, not {show(str(value))}"
    if kind in ("string_too_short", "too_short"):
        return "must not be empty"
    if kind == "string_too_long":
        return f"must be at most {context['max_length']} characters long"
    if kind == "too_long":
        return (
            "must be empty" if context["max_length"] == 0 else f"has more than {context['max_length']} items"
        )
    for name, words in (("ge", "at least"), ("gt", "more than"), ("le", "at most"), ("lt", "less than")):
        if name in context:
            return f"must be {words} {context[name]:g}, not {show(str(value))}"
    return otherwise[:1].lower() + otherwise[1:]


def _one_of(expected: str, value: object) -> str:
    choices = re.findall(r"'([^']*)'", expected) or [expected.lower()]
    listed = ", ".join(f"`{choice}`" for choice in choices)
    found = show(value) if isinstance(value, str) else f"`{str(value).lower()}`"
    hint = did_you_mean(value, choices) if isinstance(value, str) else ""
    return f"must be {'one of ' if len(choices) > 1 else ''}{listed}, not {found}{hint}"
