"""Which files go with an extension, and what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import jsonschema
import pytest

from boxeval.errors import FixtureError, UsageError
from boxeval.formats.case_extension import load_use
from boxeval.formats.extension_files import SOURCES_BYTES, extension_faults, read_extension, rooted
from boxeval.formats.reference import pages
from boxeval.graders.extension_exchange import ProtocolFault
from boxeval.spec.extension import (
    Method,
)
from boxeval.spec.extension_messages import (
    extension_schema,
)
from boxeval.spec.extension_use import ExtensionUse
from boxeval.trial.extension_room import ExtensionSource
from extension_samples import DESCRIBED, artifact, check

DOCS = Path(__file__).parent.parent.parent / "docs"


def use(*command: str, sources: tuple[str, ...] = (), **more: object) -> ExtensionUse:
    return ExtensionUse.model_validate({"command": command or ("true",), "sources": sources, **more})


def files(place: Path, *command: str, sources: tuple[str, ...] = ()) -> dict[bytes, int]:
    read = read_extension(use(*command, sources=sources), place)
    return {entry.path: entry.mode for entry in read.entries() if entry.open is not None}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "ext" / "lib").mkdir(parents=True)
    (tmp_path / "ext" / "run.sh").write_text("#!/bin/sh\n")
    (tmp_path / "ext" / "run.sh").chmod(0o750)
    (tmp_path / "ext" / "lib" / "a.py").write_text("a = 1\n")
    (tmp_path / "ext" / "lib" / "a.py").chmod(0o600)
    (tmp_path / "other").write_text("not asked for\n")
    return tmp_path


def test_sources_and_files_that_the_command_names_go_with_it(place: Path) -> None:
    assert files(place, "ext/run.sh", "--flag", "nothing", "/etc/passwd", "..", "ext") == {
        b"ext/run.sh": 0o755
    }
    everything = {b"ext/run.sh": 0o755, b"ext/lib/a.py": 0o644}
    assert files(place, "./ext/run.sh", sources=("ext",)) == everything
    assert files(place, sources=("ext/lib", "ext/", "ext/lib/a.py")) == everything
    assert files(place, "true") == {}


@pytest.mark.contract("G68")
def test_a_change_is_seen_before_and_after_a_call(place: Path) -> None:
    asked = use("ext/run.sh", sources=("ext/lib",))
    source = ExtensionSource(asked, place, read_extension(asked, place))
    source.check(Method.DESCRIBE)
    (place / "other").write_text("whatever")
    os.utime(place / "ext" / "run.sh", (1, 1))
    source.check(Method.PREPARE)
    (place / "ext" / "lib" / "b.py").write_text("")
    with pytest.raises(ProtocolFault, match="evaluate: its files have changed"):
        source.check(Method.EVALUATE)
    (place / "ext" / "lib" / "b.py").unlink()
    source.check(Method.EVALUATE)
    (place / "ext" / "run.sh").unlink()
    with pytest.raises(ProtocolFault, match="its files have changed"):
        source.check(Method.EVALUATE)
    (place / "ext" / "lib" / "a.py").unlink()
    (place / "ext" / "lib").rmdir()
    with pytest.raises(ProtocolFault, match="a file has changed since the run was planned"):
        source.check(Method.EVALUATE)


def test_what_cannot_be_read_is_refused_by_name(place: Path) -> None:
    os.mkfifo(place / "pipe")
    (place / "link").symlink_to("/etc/passwd")
    (place / "ext" / "lib" / "link").symlink_to("/etc/passwd")
    with (place / "big").open("wb") as big:
        big.truncate(SOURCES_BYTES + 1)
    for source, reason in (
        ("missing", "`missing`: cannot be read: No such file"),
        ("pipe", "`pipe`: is no regular file"),
        ("link", "`link`: cannot be read"),
        ("ext", "`lib/link` is a symlink"),
        ("big", "larger than 16777216 bytes"),
    ):
        with pytest.raises(FixtureError, match=reason):
            files(place, sources=(source,))


def test_faults_of_a_declaration() -> None:
    assert not list(extension_faults(use("python3", "a.py", replaces=("boxeval.regex", "boxeval.commands"))))
    for bad, reason in (
        (use("a\0b"), "NUL"),
        (use(sources=("../up",)), "leaves the suite's directory"),
        (use(sources=("/etc",)), "is absolute"),
        (use(replaces=("boxeval.regexp",)), "no built-in grader; did you mean `boxeval.regex`"),
        (use(replaces=("boxeval.json", "boxeval.json")), "is there twice"),
        (use(trusted=True), "is not to be had"),
    ):
        assert [reason in message for _, message in extension_faults(bad)] == [True], reason


def test_paths_of_the_host_become_paths_of_the_box(place: Path) -> None:
    script, library = place / "ext" / "run.sh", place / "ext" / "lib"
    command = ("/usr/bin/python3", str(script), f"{library}/a.py", "--flag", "-x")
    assert rooted(command, [script, library], Path.cwd()) == (
        place / "ext",
        ("/usr/bin/python3", "run.sh", "lib/a.py", "--flag", "-x"),
        ("run.sh", "lib"),
    )


@pytest.mark.contract("G64")
def test_a_command_file_is_an_argv_array(place: Path) -> None:
    command, configuration = place / "command.json", place / "configuration.json"
    command.write_text('["sh", "ext/run.sh", "--flag"]')
    configuration.write_text('{"n": 1}')
    found, directory = load_use(
        command, [place / "ext"], configuration, "example.words.strict", ["sevro.regex"]
    )
    assert (found.command, found.sources, directory) == (("sh", "ext/run.sh", "--flag"), ("ext",), place)
    assert (found.configuration, found.verdict_policy) == ({"n": 1}, "example.words.strict")
    assert found.replaces == ("boxeval.regex",)
    for text, reason in (
        ("{}", "is not a JSON array of texts"),
        ('["a", 1]', "is not a JSON array of texts"),
        ("[]", "command"),
        ('["a"', "not JSON"),
        (json.dumps(["a" * 70_000]), "larger than 65536 bytes"),
    ):
        command.write_text(text)
        with pytest.raises(UsageError, match=reason):
            load_use(command, (), None, None, ())
    with pytest.raises(UsageError, match="cannot be read"):
        load_use(place / "gone", (), None, None, ())


@pytest.mark.contract("G65")
def test_the_schema_says_what_a_message_is() -> None:
    schema = extension_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    head = {"protocol": "boxeval.extension.v1", "id": "1", "method": "evaluate"}
    result = {"checks": [check("passed", "boxeval.message")], "metrics": []}
    good: list[object] = [
        {"protocol": "boxeval.discovery.v1", "id": "1", "method": "describe", "result": DESCRIBED},
        {**head, "result": result},
        {**head, "error": {"code": "example.broken", "message": "no"}},
        {
            **head,
            "method": "prepare",
            "result": {"artifacts": [artifact("a")], "requestedInstrumentation": [], "extensionData": {}},
        },
    ]
    for message in good:
        assert validator.is_valid(message), message
    bad: list[object] = [
        head,
        {**head, "result": result, "error": {"code": "example.broken", "message": "no"}},
        {**head, "result": result, "note": "x"},
        {**head, "result": {**result, "checks": [{**check(), "status": "pass"}]}},
        {**head, "protocol": "boxeval.discovery.v1", "result": result},
    ]
    for message in bad:
        assert not validator.is_valid(message), message


def test_the_page_of_the_schema_is_the_types_own() -> None:
    assert (DOCS / "extension.schema.json").read_text("utf-8") == pages()["extension.schema.json"]
    assert json.loads(pages()["extension.schema.json"]) == extension_schema()
