"""Renders what docs has from the types: `python -m boxeval.formats.reference docs`."""

from __future__ import annotations

import json
import sys
import typing
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from boxeval.formats.later import NOT_YET, REFUSALS
from boxeval.formats.schema import suite_schema
from boxeval.spec.checks import AnyCheck
from boxeval.spec.extension_messages import (
    extension_schema,
)
from boxeval.spec.metrics import METRICS
from boxeval.spec.policy import Policy

_ORDER = (
    *(
        "SuiteInfo",
        "Defaults",
        "Matrix",
        "Target",
        "ScriptModel",
        "ReplayModel",
        "UpstreamModel",
        "Pricing",
        "Script",
        "Text",
        "ToolCalls",
        "ToolCall",
        "Refusal",
        "Failure",
        "When",
        "TokenUsage",
        "Budget",
    ),
    *(
        "Task",
        "Workspace",
        "Commit",
        "InlineFile",
        "Runner",
        "AgentOptions",
        "LoopOptions",
        "Fault",
        "After",
        "Between",
        "Step",
        "StepVerify",
        "Verify",
        "Assertion",
        "Metrics",
    ),
    "Thresholds",
)
_SUITE_HEAD = """# Suite reference

Generated from the types (`python -m boxeval.formats.reference docs`); do not edit.

A suite is one YAML file of at most 1 MiB. Names are camelCase, unknown keys are errors, and a plain value
that YAML 1.1 and 1.2 read differently (`010`, `1:30`, `NO`, a date) must be in quotes. The first line

    # yaml-language-server: $schema=suite.schema.json

makes an editor complete and check it, with the file that `boxeval schema suite` prints.
"""
_POLICY_HEAD = """# Policies

A policy is a YAML file that says how boxes are shut. `default` and `strict` come with boxeval; `policy:` also
takes the path of a file that ends in `.yaml`, relative to the suite. Nothing opens a box: a key that would
(`privileged`, `volumes`, `pid` and the like) is refused by name. A mount is read-only, never of a system
directory, a home directory or the engine's own files, and never of a directory with another mount below it.
`workspaceMib + homeMib + tmpMib + shmMib + 64` must fit into `memoryMib`: a tmpfs is charged to its writer.
"""
_METRICS_HEAD = """# Metrics

Generated from `boxeval.spec.metrics` (`python -m boxeval.formats.reference docs`); do not edit.

A metric that was not measured is null, and every comparison with it fails, `neq` too.
"""


def pages() -> dict[str, str]:
    """Every generated file of docs, by name."""
    return {
        "suite-reference.md": suite_reference(),
        "metrics.md": metrics_page(),
        "suite.schema.json": json.dumps(suite_schema(), indent=2) + "\n",
        "extension.schema.json": json.dumps(extension_schema(), indent=2) + "\n",
    }


def suite_reference() -> str:
    """The page on suites and policies, in Markdown."""
    schema = suite_schema()
    parts = [_SUITE_HEAD, *_section("Suite", schema, schema["$defs"], 2)]
    for name in _ORDER:
        parts += _section(name, schema["$defs"][name], schema["$defs"], 2)
    parts += list(_checks(schema["$defs"]))
    parts += ["## Not supported yet\n", f"These keys are known and refused: each {NOT_YET}.\n", _later()]
    policy = Policy.model_json_schema(by_alias=True, mode="validation")
    parts += [_POLICY_HEAD, *_section("Policy", policy, policy["$defs"], 2)]
    for name in ("Limits", "CollectCaps", "TrialBudget", "ReadOnlyMount"):
        parts += _section(name, policy["$defs"][name], policy["$defs"], 2)
    return "\n".join(parts)


def _checks(shared: dict[str, Any]) -> Iterator[str]:
    """One table of graders, and one of each grader's configuration."""
    yield "## Checks\n"
    yield "A check is `{id, grader, configuration}`; docs/graders.md says what each grader does.\n"
    declared = {check.model_fields["grader"].annotation: check for check in typing.get_args(AnyCheck)}
    rows = [
        (f"`{typing.get_args(name)[0]}`", check.__doc__ or "", check.model_fields["configuration"].annotation)
        for name, check in declared.items()
    ]
    links = ((name, meaning, f"[{kind.__name__}](#{kind.__name__.lower()})") for name, meaning, kind in rows)
    yield _table(("grader", "asks for", "configuration"), links)
    for _, _, kind in rows:
        yield from _section(kind.__name__, shared[kind.__name__], shared, 3)


def metrics_page() -> str:
    """The page on metrics, in Markdown."""
    rows = ((f"`{m.name}`", m.type, m.unit, m.meaning, m.source) for m in METRICS.values())
    return f"{_METRICS_HEAD}\n{_table(('metric', 'type', 'unit', 'meaning', 'source'), rows)}"


def _section(name: str, schema: dict[str, Any], shared: dict[str, Any], level: int) -> Iterator[str]:
    yield f"{'#' * level} {name}\n"
    yield f"{schema.get('description', '').strip()}\n"
    required = schema.get("required", [])
    rows = (
        (f"`{key}`", _type(value, shared), _default(key, value, required), _meaning(value, shared))
        for key, value in schema["properties"].items()
    )
    yield _table(("key", "type", "default", "meaning"), rows)


def _meaning(value: dict[str, Any], shared: dict[str, Any]) -> str:
    # Pydantic leaves a field's description out where it is that of the field's type.
    inner = shared.get(str(value.get("$ref", "")).rpartition("/")[2], {})
    return str(value.get("description") or inner.get("description", "")).partition("\n")[0]


def _type(value: dict[str, Any], shared: dict[str, Any]) -> str:
    if "oneOf" in value:
        return "[check](#checks)"
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        inner = shared[name]
        if not inner:
            return "any value"
        return _choices(inner["enum"]) if "enum" in inner else f"[{name}](#{name.lower()})"
    if "anyOf" in value:
        return " or ".join(_type(v, shared) for v in value["anyOf"] if v.get("type") != "null")
    if "const" in value or "enum" in value:
        return _choices([value["const"]] if "const" in value else value["enum"])
    if value.get("type") == "array":
        return f"list of {_type(value['items'], shared)}" if "items" in value else "empty list"
    if value.get("type") == "object":
        inner = value.get("additionalProperties") or next(iter(value["patternProperties"].values()))
        return f"mapping of names to {_type(inner, shared)}"
    words = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}
    limits = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<="}
    bounds = ", ".join(f"{sign} {value[key]}" for key, sign in limits.items() if key in value)
    return f"{words[value['type']]}{f' ({bounds})' if bounds else ''}"


def _choices(values: Iterable[object]) -> str:
    return " or ".join(f"`{str(v).lower() if isinstance(v, bool) else v}`" for v in values)


def _default(key: str, value: dict[str, Any], required: list[str]) -> str:
    if key in required:
        return "required"
    default = value.get("default")
    if default is None or default in ([], {}, "") or isinstance(default, dict):
        return ""
    return _choices([default])


def _later() -> str:
    rows = (
        (model.__name__, ", ".join(f"`{key}`" for key in keys))
        for model, keys in REFUSALS.keys.items()
        if keys
    )
    return _table(("in", "keys"), rows)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


if __name__ == "__main__":
    for name, text in pages().items():
        Path(sys.argv[1], name).write_text(text, "utf-8")
