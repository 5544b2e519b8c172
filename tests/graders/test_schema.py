"""`boxeval.schema`: Draft 2020-12, nothing outside the schema, formats (contract G12; F2, F4)."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import tarfile
import threading
from pathlib import Path
from typing import Any

import pytest

from grader_fixtures import Grades

SUITE = "jsonschema==4.26.0 --hash=sha256:0c26707e2efad8aa1bfc5b7ce170f3fccc2e4918ff85989ba9ffa9facb2be326"
"""A release whose source ships the JSON Schema Test Suite, by digest."""
OPTIONAL = (
    *(
        "anchor",
        "bignum",
        "dynamicRef",
        "ecmascript-regex",
        "float-overflow",
        "id",
        "no-schema",
        "non-bmp-regex",
    ),
    *("refOfUnknownKeyword", "unknownKeyword"),
    *(f"format/{name}" for name in ("date", "date-time", "email", "ipv4", "ipv6", "json-pointer", "regex")),
    *("format/time", "format/uuid"),
)


@pytest.mark.contract("G12")
@pytest.mark.parametrize(
    ("schema", "text", "status"),
    [
        ({"type": "object", "required": ["a"]}, '{"a": 1}', "passed"),
        ({"type": "object", "required": ["a"]}, "{}", "failed"),
        ({"type": "integer"}, "true", "failed"),
        ({"type": "number", "minimum": 0}, "NaN", "failed"),
        ({"const": 1}, "true", "failed"),
        ({"enum": [0]}, "false", "failed"),
        ({"const": [1.0]}, "[1]", "passed"),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "number"}}}, "1", "passed"),
        ({"$ref": "#n", "$defs": {"x": {"$anchor": "n", "type": "number"}}}, '"s"', "failed"),
        (
            {"$id": "urn:a", "$ref": "urn:b", "$defs": {"b": {"$id": "urn:b", "type": "number"}}},
            '"s"',
            "failed",
        ),
        ({"pattern": r"^\d$"}, '"٣"', "failed"),
        ({"pattern": r"^.$"}, '"😀"', "passed"),
        ({"format": "uuid"}, '"nope"', "failed"),
        ({"format": "date-time"}, '"2024-13-01T00:00:00Z"', "failed"),
        ({"format": "date-time"}, '"2024-12-01T00:00:00Z"', "passed"),
        ({"format": "uuid"}, "7", "passed"),
    ],
)
def test_schemas(grades: Grades, schema: dict[str, Any], text: str, status: str) -> None:
    assert not grades.faults("schema", schema=schema)
    assert grades(text, "schema", schema=schema) == status


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"pattern": r"^\d\p{Lu}"}, '"3É"'),
        ({"patternProperties": {r"^\p{Lu}": False}}, '{"É": 1}'),
        ({"patternProperties": {r"^\p{Lu}": True}, "additionalProperties": False}, '{"É": 1}'),
        ({"patternProperties": {r"^\p{Lu}": True}, "unevaluatedProperties": False}, '{"É": 1}'),
    ],
    ids=["pattern", "patternProperties", "additionalProperties", "unevaluatedProperties"],
)
def test_every_keyword_with_patterns_uses_ecmascript(
    grades: Grades, schema: dict[str, Any], place: str
) -> None:
    """Python's own patterns have no `\\p`: they would raise."""
    wanted = "failed" if schema.get("patternProperties") == {r"^\p{Lu}": False} else "passed"
    assert grades(place, "schema", schema=schema) == wanted


@pytest.mark.contract("G2", "G12")
@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"type": "nonsense"}, ("schema", "type")),
        ({"properties": {"a": {"minimum": "0"}}}, ("schema", "properties", "a", "minimum")),
        ({"$ref": "#/$defs/none"}, ("schema", "$ref")),
        ({"items": {"$ref": "file:///etc/passwd"}}, ("schema", "items", "$ref")),
        ({"items": {"$ref": "other.json"}}, ("schema", "items", "$ref")),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, ("schema", "$ref")),
        ({"$ref": "#/x", "x": {"$ref": "http://example.com/"}}, ("schema", "$ref", "$ref")),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, ("schema", "$schema")),
        ({"pattern": "("}, ("schema", "pattern")),
        ({"patternProperties": {"[": {}}}, ("schema", "patternProperties")),
    ],
)
def test_a_bad_schema_does_not_compile(
    grades: Grades, schema: dict[str, Any], place: tuple[str, ...]
) -> None:
    [(path, _)] = grades.faults("schema", schema=schema)
    assert path[: len(place)] == place
    assert [path for path, _ in grades.faults("output", schema=schema)] == [path]


@pytest.mark.contract("G12")
def test_no_reference_is_ever_followed_out(grades: Grades, tmp_path: Path) -> None:
    """Known failure F2: a listening socket hears nothing, and a file that would pass is not read."""
    (tmp_path / "any.json").write_text("{}")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.5)
        heard = []

        def listen() -> None:
            with contextlib.suppress(TimeoutError):
                heard.append(server.accept())

        thread = threading.Thread(target=listen)
        thread.start()
        port = server.getsockname()[1]
        references = (
            f"http://127.0.0.1:{port}/s.json",
            f"//127.0.0.1:{port}/s.json",
            (tmp_path / "any.json").as_uri(),
        )
        for reference in references:
            for schema in ({"$ref": reference}, {"$dynamicRef": reference}, {"$schema": reference}):
                assert grades.faults("schema", schema=schema)
                assert grades("{}", "schema", schema=schema) != "passed" or "$schema" in schema
        with_id = {"$id": f"http://127.0.0.1:{port}/", "$ref": "s.json"}
        assert grades.faults("schema", schema=with_id)
        assert grades("{}", "schema", schema=with_id) == "error"
        thread.join()
        assert not heard


def test_a_schema_without_end_is_an_error(grades: Grades) -> None:
    verdict = grades.verdict("1", "schema", schema={"$ref": "#"})
    assert (verdict.status.value, verdict.reason) == ("error", "grading recurses too deep")
    deep = "[" * 256 + "]" * 256
    assert grades(deep, "schema", schema={"items": {"$ref": "#"}}) == "passed"


def test_a_format_that_nothing_enforces_is_told(grades: Grades) -> None:
    """Known failure F4."""
    [(path, said)] = grades.warnings("schema", schema={"properties": {"a": {"format": "uri"}}})
    assert path == ("schema", "properties", "a", "format")
    assert said == "format 'uri' is not enforced"
    assert not grades.warnings("schema", schema={"format": "date-time"})


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The draft2020-12 files of the JSON Schema Test Suite, fetched by digest."""
    place = tmp_path_factory.mktemp("suite")
    (place / "wanted").write_text(SUITE)
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "jsonschema"]
    done = subprocess.run(
        [*command, "--require-hashes", "-r", "wanted", "-d", "."], cwd=place, capture_output=True, text=True
    )
    if done.returncode:
        pytest.fail(
            f"the JSON Schema Test Suite cannot be fetched, so nothing is proved by it:\n{done.stderr[-500:]}"
        )
    with tarfile.open(next(place.glob("*.tar.gz"))) as archive:
        members = [m for m in archive.getmembers() if "/json/tests/draft2020-12/" in m.name and m.isfile()]
        archive.extractall(place, members=members, filter="data")
    return next(place.glob("*/json/tests/draft2020-12"))


@pytest.mark.contract("G12")
@pytest.mark.slow
def test_the_json_schema_test_suite(grades: Grades, suite: Path) -> None:
    """Every test of it, but that formats are enforced here, and that what leads out of a schema is refused."""
    files = [*suite.glob("*.json"), *(suite / "optional" / f"{name}.json" for name in OPTIONAL)]
    asked, wrong = 0, []
    for file in sorted(files):
        for group in json.loads(file.read_text("utf-8")):
            schema = group["schema"]
            if not isinstance(schema, dict):
                continue  # a check's schema is an object
            if grades.faults("schema", schema=schema):
                text = json.dumps(schema)
                assert (
                    "localhost:1234" in text
                    or '"$ref": "https://json-schema.org/draft/2020-12/schema"' in text
                )
                continue
            for test in group["tests"]:
                if "only an annotation" in test["description"]:
                    continue
                asked += 1
                status = grades(json.dumps(test["data"]), "schema", schema=schema)
                if status != ("passed" if test["valid"] else "failed"):
                    wrong.append((file.name, group["description"], test["description"], status))
    assert not wrong
    assert asked > 1400
