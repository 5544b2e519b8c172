"""The JSON Schema of suites, for editors. What it cannot say, `load_suite` checks."""

from __future__ import annotations

from typing import Any

from boxeval.spec.suite import Suite

COMMENT = "# yaml-language-server: $schema="
"""First line of a suite, before the schema's path or address, that makes an editor complete and check."""


def suite_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of suite version 2."""
    schema = Suite.model_json_schema(by_alias=True, mode="validation")
    schema["title"] = "boxeval suite, version 2"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
