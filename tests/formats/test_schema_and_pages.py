"""The schema for editors, and the pages that are rendered from the types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from boxeval.formats.later import REFUSALS
from boxeval.formats.reference import pages
from boxeval.formats.schema import COMMENT, suite_schema
from boxeval.settings import resource
from suite_samples import RIGHT, changed

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parent.parent.parent / "docs"


def validator() -> jsonschema.Draft202012Validator:
    schema = suite_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_the_schema_is_valid_and_says_its_draft() -> None:
    validator()
    assert suite_schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    json.dumps(suite_schema())


def test_every_property_is_described_and_camel_case() -> None:
    schema = suite_schema()
    records = [schema, *(item for item in schema["$defs"].values() if "properties" in item)]
    for record in records:
        assert record["additionalProperties"] is False
        for name, value in record["properties"].items():
            assert "_" not in name
            inner = schema["$defs"].get(value.get("$ref", "").rpartition("/")[2], {})
            assert value.get("description") or inner.get("description"), name


@pytest.mark.parametrize("file", sorted(resource("suites").glob("*.yaml")), ids=lambda file: file.stem)
def test_built_in_suites_fit_and_name_the_schema(file: Path) -> None:
    validator().validate(yaml.safe_load(file.read_text("utf-8")))
    first = file.read_text("utf-8").splitlines()[0]
    assert first.startswith(COMMENT)
    assert (file.parent / first.removeprefix(COMMENT)).is_file()


@pytest.mark.parametrize(
    "change",
    [
        ("tasks.0.workspce", {}),
        ("tasks.0.timeout_ms", 5),
        ("version", 1),
        ("matrix.repeats", 0),
        ("tasks.0.tags", [3.1]),
    ],
)
def test_the_schema_refuses_what_the_loader_refuses(change: tuple[str, Any]) -> None:
    validator().validate(yaml.safe_load(RIGHT))
    assert not validator().is_valid(yaml.safe_load(changed(change)))


@pytest.mark.contract("S31")
def test_pages_are_as_rendered() -> None:
    """If this fails: python -m boxeval.formats.reference docs"""
    for name, text in pages().items():
        assert (DOCS / name).read_text("utf-8") == text, name


def test_later_keys_are_not_yet_in_the_types() -> None:
    for model, keys in REFUSALS.keys.items():
        known = {field.alias for field in model.model_fields.values()}
        assert not known & set(keys), model
