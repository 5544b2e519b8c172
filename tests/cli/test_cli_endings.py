"""How commands end: one clear line and the documented code, whatever happened."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_process import boxeval

from boxeval import errors
from boxeval.cli import app as command_line
from boxeval.cli.app import call
from boxeval.cli.output import camel
from boxeval.sandbox.images import StoredImage

pytestmark = pytest.mark.slow


def ending(monkeypatch: pytest.MonkeyPatch, fail: Callable[[], None]) -> int:
    """Let `boxeval runs` fail in a certain way."""
    monkeypatch.setattr("boxeval.reports.listing.listed_runs", lambda _: fail())
    return call(["runs"])


def raising(error: BaseException) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


CODES = {
    errors.BoxevalError: 70,
    errors.UsageError: 2,
    errors.FixtureError: 2,
    errors.EngineError: 3,
    errors.EngineMissing: 2,
    errors.EngineUnsupported: 2,
    errors.ImageError: 3,
    errors.HostileTree: 3,
    errors.TamperError: 4,
    errors.IncompleteError: 3,
    errors.UnreadableError: 1,
    errors.StorageError: 70,
}


@pytest.mark.parametrize(("kind", "code"), CODES.items())
def test_every_error_is_one_line_and_its_code(
    kind: type[errors.BoxevalError],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert ending(monkeypatch, raising(kind("it is \x1b[2Jbroken\nforged: line"))) == code
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "boxeval: it is \\x1b[2Jbroken\\x0aforged: line\n")


@pytest.mark.contract("S3")
def test_suite_problems_are_one_line_each(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    problems = [
        errors.Problem("s.yaml", "tasks[0].id", "is missing", 4, 3),
        errors.Problem("s.yaml", "", "is \x1b[31mred", 0, 0),
    ]
    assert ending(monkeypatch, raising(errors.SuiteError(problems))) == 2
    assert capsys.readouterr().err == "s.yaml:4:3: tasks[0].id: is missing\ns.yaml: is \\x1b[31mred\n"


def test_an_unexpected_fault_is_said_to_be_ours(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ending(monkeypatch, raising(ValueError("odd"))) == 70
    assert capsys.readouterr().err == "boxeval: ValueError: odd; this is a fault in boxeval\n"
    monkeypatch.setenv("BOXEVAL_DEBUG", "1")
    assert ending(monkeypatch, raising(ValueError("odd"))) == 70
    assert "Traceback (most recent call last):" in capsys.readouterr().err


def test_interrupt_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ending(monkeypatch, raising(KeyboardInterrupt())) == 130


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["run", "--nonsense", "s.yaml"],
        ["run"],
        ["run", "a.yaml", "--suite", "b.yaml"],
        ["run", "a.yaml", "--jobs", "0"],
        ["run", "a.yaml", "--jobs", "many"],
        ["run", "a.yaml", "--repeat", "0"],
        ["run", "a.yaml", "--max-failures", "-1"],
        ["run", "a.yaml", "--format", "html"],
        ["run", "no-such-builtin"],
        ["run", "a.yaml", "--report", "/nonexistent/folder/report.json"],
        ["report"],
        ["keys"],
        ["keys", "revoke", "ab"],
        ["keys", "trust", "/nonexistent"],
    ],
)
def test_usage_errors_are_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert call(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err


@pytest.mark.contract("S45")
@pytest.mark.parametrize(
    ("name", "value"), [("BOXEVAL_JOBS", "0"), ("BOXEVAL_JOBS", "two"), ("BOXEVAL_HERMETIC", "no")]
)
def test_bad_settings_name_the_variable(name: str, value: str) -> None:
    done = boxeval("runs", **{name: value})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"boxeval: {name}: ")


@pytest.mark.parametrize("arguments", [["--help"], ["schema", "policy"]])
def test_a_reader_that_goes_away_is_no_fault(arguments: list[str]) -> None:
    gone, pipe = os.pipe()
    os.close(gone)
    done = subprocess.run(
        [sys.executable, "-m", "boxeval", *arguments],
        stdout=pipe,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(pipe)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_full_disk_behind_standard_output_is_70() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "boxeval", "schema", "policy"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 70
    assert done.stderr.startswith("boxeval: cannot write to standard output: ")


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_are_no_fault(closed: str) -> None:
    command = f'exec "$0" -m boxeval runs {closed}'
    done = subprocess.run(["/bin/sh", "-c", command, sys.executable], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_json_names_are_camel_case() -> None:
    tag = StoredImage("boxeval/base:1", "sha256:1", 5, current=True, in_use=False)
    assert list(camel(tag)) == ["tag", "imageId", "sizeBytes", "current", "inUse"]


def test_any_locale_can_print_any_report() -> None:
    done = boxeval("report", "./\u65e5\u672c", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (done.returncode, done.stderr) == (1, "boxeval: ./\\u65e5\\u672c: no such directory\n")


@pytest.mark.parametrize("arguments", [["images", "ls"], ["images", "build"], ["images", "prune"], ["clean"]])
@pytest.mark.parametrize("host", ["unix:///nonexistent/docker.sock", "tcp://127.0.0.1:1"])
def test_no_engine_is_one_clear_line(
    arguments: list[str], host: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOCKER_HOST", host)
    assert call(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("boxeval: no Docker Engine")
    assert said.err.count("\n") == 1


def test_doctor_without_an_engine_says_what_that_means(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    assert call(["doctor"]) == 1
    text = capsys.readouterr().out
    assert text.startswith("fail  engine ")
    assert text.endswith("boxeval cannot work here: mend what says fail\n")


def test_all_groups_are_there() -> None:
    import typer

    root = typer.main.get_command(command_line.app)
    assert set(root.commands) == {  # type: ignore[attr-defined]
        "run", "validate", "report", "verify", "show", "doctor", "clean", "schema", "runs", "images", "keys",
        "agents", "extension", "grade", "identity", "soak", "check",
    }  # fmt: skip
