"""JSON Schema, Draft 2020-12: references inside the schema only, patterns by ECMAScript, some formats enforced."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from ipaddress import IPv4Address, IPv6Address
from types import SimpleNamespace
from typing import Any

import jsonschema._keywords
import jsonschema._utils
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError, ValidationError
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from boxeval.graders.child.patterns import Patterns
from boxeval.rules.json_values import pointer_fault

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_THEIRS = ("date", "ipv4", "ipv6", "uuid")
_ATOM = r"[^\s@\".,:;<>()\[\]\\]+"
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_EMAIL = re.compile(
    rf'(?:{_ATOM}(?:\.{_ATOM})*|"(?:[^"\\\r\n]|\\.)*")@'
    rf"(?:{_LABEL}(?:\.{_LABEL})*|\[(?:IPv6:(?P<six>[0-9a-f:.]+)|(?P<four>[0-9.]+))\])",
    re.A | re.I,
)
_TIME = re.compile(
    r"([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60)(\.\d+)?(z|[+-]([01]\d|2[0-3]):[0-5]\d)", re.A | re.I
)

Path = tuple[str | int, ...]


@dataclass
class Findings:
    """What compiling a schema gave: faults, and formats that nothing enforces."""

    faults: list[tuple[Path, str]] = field(default_factory=list)
    warnings: list[tuple[Path, str]] = field(default_factory=list)


class Schemas:
    """Compiles and applies schemas."""

    def __init__(self, patterns: Patterns) -> None:
        self._patterns = patterns
        # The library looks for patterns in four keywords through `re`, which is neither ECMAScript nor to be replaced
        # by anything public. This is a process of its own, and a test holds each keyword to it.
        shim = SimpleNamespace(
            search=lambda pattern, text: patterns.matches_unanchored(_source(pattern), text)
        )
        jsonschema._keywords.re = shim  # type: ignore[attr-defined]
        jsonschema._utils.re = shim  # type: ignore[attr-defined]
        self._formats = FormatChecker(formats=_THEIRS)
        for name, function in {
            "date-time": is_date_time,
            "time": is_time,
            "email": is_email,
            "json-pointer": lambda text: pointer_fault(text) is None,
            "regex": lambda text: patterns.schema_fault(text) is None,
        }.items():
            self._formats.checks(name)(_of_strings(function))

    def compile(self, schema: dict[str, Any]) -> Findings:
        """Everything wrong with a schema before it meets an instance."""
        found = Findings()
        try:
            Draft202012Validator.check_schema(schema, format_checker=self._formats)
        except SchemaError as error:
            found.faults.append((tuple(error.absolute_path), f"is no JSON Schema: {error.message[:200]}"))
            return found
        resource = DRAFT202012.create_resource(schema)
        resolver = Registry().resolver_with_root(resource)
        self._walk(resource, resolver, (), found, set())
        return found

    def first_error(self, schema: dict[str, Any], value: Any) -> ValidationError | None:
        """The first error of an instance; None if it is valid. Raises Unresolvable, RecursionError."""
        validator = Draft202012Validator(schema, registry=Registry(), format_checker=self._formats)
        return next(validator.iter_errors(value), None)

    def _walk(self, resource: Any, resolver: Any, path: Path, found: Findings, seen: set[int]) -> None:
        schema = resource.contents
        if not isinstance(schema, dict) or id(schema) in seen:
            return
        seen.add(id(schema))
        if schema.get("$schema", DIALECT).rstrip("#") != DIALECT:
            found.faults.append(((*path, "$schema"), f"must be {DIALECT}"))
        for keyword, pattern in _patterns_of(schema):
            if fault := self._patterns.schema_fault(pattern):
                found.faults.append(((*path, keyword), fault))
        name = schema.get("format")
        if isinstance(name, str) and name not in self._formats.checkers:
            found.warnings.append(((*path, "format"), f"format {name[:40]!r} is not enforced"))
        for keyword in ("$ref", "$dynamicRef"):
            if isinstance(reference := schema.get(keyword), str):
                try:
                    target = resolver.lookup(reference)
                except (Unresolvable, ValueError, LookupError):
                    said = f"{reference[:200]!r} leads out of the schema, or nowhere in it"
                    found.faults.append(((*path, keyword), said))
                    continue
                inner = DRAFT202012.create_resource(target.contents)
                self._walk(inner, target.resolver, (*path, keyword), found, seen)
        for place, below in _subschemas(schema):
            sub = DRAFT202012.create_resource(below)
            self._walk(sub, resolver.in_subresource(sub), (*path, *place), found, seen)


_ONE = (
    *(
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
    ),
    *("unevaluatedItems", "unevaluatedProperties"),
)
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")


def _subschemas(schema: dict[str, Any]) -> Iterator[tuple[Path, Any]]:
    """The schemas in a schema, by place."""
    for key, value in schema.items():
        if key in _ONE:
            yield (key,), value
        elif key in _LISTS and isinstance(value, list):
            yield from (((key, number), inner) for number, inner in enumerate(value))
        elif key in _NAMED and isinstance(value, dict):
            yield from (((key, name), inner) for name, inner in value.items())


def _patterns_of(schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if isinstance(pattern := schema.get("pattern"), str):
        yield "pattern", pattern
    if isinstance(named := schema.get("patternProperties"), dict):
        yield from (("patternProperties", pattern) for pattern in named)


def _source(pattern: Any) -> str:
    """The text of a pattern; the library's own ones are compiled."""
    return pattern if isinstance(pattern, str) else str(pattern.pattern)


def _of_strings(function: Any) -> Any:
    return lambda value: not isinstance(value, str) or function(value)


def is_time(text: str) -> bool:
    """A time of RFC 3339. A leap second is one only at the end of a day in UTC."""
    found = _TIME.fullmatch(text)
    if not found:
        return False
    hours, minutes, seconds, _, offset, _ = found.groups()
    if seconds != "60":
        return True
    shift = timedelta()
    if offset not in "zZ":
        shift = timedelta(hours=int(offset[1:3]), minutes=int(offset[4:6])) * (-1 if offset[0] == "+" else 1)
    at = datetime(2000, 1, 2, int(hours), int(minutes)) + shift
    return (at.hour, at.minute) == (23, 59)


def is_email(text: str) -> bool:
    """A mailbox of RFC 5321, without comments."""
    found = _EMAIL.fullmatch(text)
    if not found:
        return False
    try:
        if six := found["six"]:
            IPv6Address(six)
        if four := found["four"]:
            IPv4Address(four)
    except ValueError:
        return False
    return True


def is_date_time(text: str) -> bool:
    """A date and a time of RFC 3339 with `T` between them."""
    day, sign, rest = text[:10], text[10:11], text[11:]
    if sign not in ("T", "t") or not re.fullmatch(r"\d{4}-\d\d-\d\d", day, re.A):
        return False
    try:
        date.fromisoformat(day)
    except ValueError:
        return False
    return is_time(rest)
