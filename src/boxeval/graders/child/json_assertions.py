"""`boxeval.json`, `boxeval.schema` and `boxeval.output`: assertions on the document in a message."""

from __future__ import annotations

from typing import Any

from boxeval.graders.child.documents import document
from boxeval.graders.child.patterns import Patterns
from boxeval.graders.child.schemas import Schemas
from boxeval.graders.child.text_assertions import grade_text
from boxeval.graders.child.verdicts import PASSED, Verdict, failed
from boxeval.rules.json_values import NotJson, NoValue, equal, has_at_least, kind, resolve, shown


def grade_json(configuration: dict[str, Any], text: str, patterns: Patterns) -> Verdict:
    """A value that is there, is equal, or has a member."""
    try:
        found = document(text, configuration.get("exactDocument", False))
    except NotJson as error:
        return failed(str(error), "a JSON document", repr(text[:200]))
    wanted = {key: value for key, value in configuration.items() if key in ("equals", "contains")}
    return _selected(found, configuration.get("pointer", ""), wanted, patterns) or PASSED


def grade_schema(configuration: dict[str, Any], text: str, schemas: Schemas) -> Verdict:
    """A document that fits a schema."""
    try:
        found = document(text, configuration.get("exactDocument", False))
    except NotJson as error:
        return failed(str(error), "a JSON document", repr(text[:200]))
    return _valid(found, configuration["schema"], schemas) or PASSED


def grade_output(configuration: dict[str, Any], text: str, patterns: Patterns, schemas: Schemas) -> Verdict:
    """All assertions in the order of G13; the first that does not hold is told."""
    names = {"equals": "expectJson", "contains": "containsJson"}
    wanted = {key: configuration[name] for key, name in names.items() if name in configuration}
    if configuration.get("validJson") or "schema" in configuration or "jsonPath" in configuration:
        try:
            found = document(text, exact=False)
        except NotJson as error:
            return failed(str(error), "a JSON document", repr(text[:200]))
        if "schema" in configuration and (verdict := _valid(found, configuration["schema"], schemas)):
            return verdict
        if "jsonPath" in configuration and (
            verdict := _selected(found, configuration["jsonPath"], wanted, patterns)
        ):
            return verdict
    return grade_text(configuration, text, patterns) or PASSED


def _selected(found: Any, pointer: str, wanted: dict[str, Any], patterns: Patterns) -> Verdict | None:
    try:
        value = resolve(found, pointer)
    except NoValue as error:
        return failed(str(error), f"a value at {pointer!r}", shown(found))
    if "equals" in wanted and not equal(value, wanted["equals"]):
        return failed(f"the value at {pointer!r} is another", shown(wanted["equals"]), shown(value))
    if "contains" not in wanted:
        return None
    if not isinstance(value, list):
        return failed(f"the value at {pointer!r} is a {kind(value)}", "an array", shown(value))

    def matches(pattern: str, text: str) -> bool:
        return patterns.matches(pattern, "", text)

    if any(has_at_least(member, wanted["contains"], matches) for member in value):
        return None
    return failed(
        f"no member of the array at {pointer!r} matches",
        f"a member with {shown(wanted['contains'])}",
        shown(value),
    )


def _valid(found: Any, schema: dict[str, Any], schemas: Schemas) -> Verdict | None:
    error = schemas.first_error(schema, found)
    if error is None:
        return None
    place = "".join(f"/{part}" for part in error.absolute_path)
    wanted = f"{error.validator}: {shown(error.validator_value)}"
    return failed(f"does not fit the schema at {place!r}: {error.validator}", wanted, shown(error.instance))
