"""Graders that a candidate can forge are told when a suite is read (issue item 7; known failures A3, A5, A6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from boxeval.formats.suite_v2 import load_suite
from boxeval.graders.examiner import Examiner
from boxeval.graders.preflight import preflight
from suite_samples import changed, load

SUITES = Path(__file__).parents[2] / "suites"
SAFE_PYTEST = "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 python3 -P -m pytest -c /dev/null --noconftest checks"


def warnings(directory: Path, *changes: tuple[str, object]) -> list[str]:
    return [f"{warning.path}: {warning.message}" for warning in load(directory, changed(*changes)).warnings]


def with_command(command: str, **task: Any) -> list[tuple[str, object]]:
    verify = {"commands": [command], **task.pop("verify", {})}
    return [("tasks.0.verify", verify), *((f"tasks.0.{key}", value) for key, value in task.items())]


@pytest.mark.parametrize(
    ("command", "planted"),
    [
        ("pytest", ("conftest.py", "pytest.ini", "planted.dist-info/entry_points.txt")),
        ("cd src && pytest -q", ("conftest.py", "pytest.ini", "planted.dist-info/entry_points.txt")),
        ("python3 -m pytest -q tests", ("conftest.py", "pytest.ini", "planted.dist-info/entry_points.txt")),
        ("pytest --noconftest -c /dev/null", ("planted.dist-info/entry_points.txt",)),
        ("python -m unittest discover", ("unittest.py",)),
        ("npm test", ("package.json",)),
        ("npm run test -- --ci", ("package.json",)),
        ("npx jest", ("package.json",)),
        ("make -j2 test", ("Makefile",)),
        ("go test ./...", ("planted_test.go",)),
        ("cargo test", ("build.rs",)),
        ("tox", ("tox.ini",)),
    ],
)
def test_a_runner_that_a_plant_can_silence(tmp_path: Path, command: str, planted: tuple[str, ...]) -> None:
    [found] = warnings(tmp_path, *with_command(command))
    assert found.startswith("tasks[0].verify.commands[0]: ")
    assert [path for path in found.split("`") if path in planted] == list(planted)
    in_check = {"id": "c", "grader": "boxeval.shell", "configuration": {"run": command}}
    [found] = warnings(tmp_path, ("tasks.0.verify", {"checks": [in_check]}))
    assert found.startswith("tasks[0].verify.checks[0].configuration.run: ")


@pytest.mark.parametrize(
    ("command", "task"),
    [
        (SAFE_PYTEST, {}),
        ("pytest", {"protect": ["conftest.py", "pytest.ini", "*.dist-info/"]}),
        ("pytest", {"writes": ["src/"]}),
        ("pytest", {"verify": {"forbidPaths": ["conftest.py", "pytest.ini", "*.dist-info"]}}),
        ("python3 -P -m pytest", {"verify": {"files": {"conftest.py": "", "pytest.ini": ""}}}),
        ("python3 -I -m unittest checks/test_a.py", {}),
        ("python3 -I checks/test_a.py", {}),
        ("npm test", {"protect": ["package.json"]}),
        ("make -f checks/Makefile test", {}),
        ("test -f a.txt", {}),
        ("grep -q pytest requirements.txt", {}),
        ("echo maketest contest", {}),
    ],
)
def test_a_runner_that_is_kept_to_what_the_suite_says(
    tmp_path: Path, command: str, task: dict[str, Any]
) -> None:
    files = {
        "files": {
            "src/a.py": "",
            "conftest.py": "",
            "pytest.ini": "",
            "package.json": "",
            "x.dist-info/a": "",
        }
    }
    changes = with_command(command, workspace={"kind": "inline", **files}, **task)
    assert warnings(tmp_path, *changes) == []


def test_output_of_the_code_under_test_is_forgeable(tmp_path: Path) -> None:
    """Known failure A3."""
    [found] = warnings(tmp_path, *with_command(f"{SAFE_PYTEST} | grep -q '1 passed'"))
    assert found.endswith("can be printed by the code under test; let its exit code decide")
    check = {"id": "c", "grader": "boxeval.shell"}
    forged = {"run": "python3 main.py", "expectRegex": "all tests passed"}
    [found] = warnings(tmp_path, ("tasks.0.verify", {"checks": [{**check, "configuration": forged}]}))
    assert found.startswith(
        "tasks[0].verify.checks[0].configuration.expectRegex: is looked for in what the code"
    )
    own = {"run": "cat report.txt", "expectRegex": "passed"}
    assert not warnings(tmp_path, ("tasks.0.verify", {"checks": [{**check, "configuration": own}]}))


@pytest.mark.parametrize(
    ("grader", "configuration", "warned"),
    [
        ("boxeval.regex", {"pattern": r"\d+ passed"}, True),
        ("boxeval.output", {"expectRegex": "^OK$"}, True),
        ("boxeval.regex", {"pattern": "error", "negate": True}, False),
        ("boxeval.regex", {"pattern": r"\b3000\b"}, False),
        ("boxeval.regex", {"pattern": "passport"}, False),
    ],
)
def test_a_claim_in_the_message_is_no_result(
    tmp_path: Path, grader: str, configuration: dict[str, Any], warned: bool
) -> None:
    check = {"id": "c", "grader": grader, "configuration": configuration}
    found = warnings(tmp_path, ("tasks.0.verify", {"checks": [check]}))
    assert len(found) == warned
    assert all("can claim any result" in text for text in found)


def test_a_reference_solution_that_fails_its_own_check(tmp_path: Path, examiner: Examiner) -> None:
    checks = [
        {"id": "port", "grader": "boxeval.regex", "configuration": {"pattern": r"\b3000\b"}},
        {"id": "exact", "grader": "boxeval.output", "configuration": {"expectExact": "port 8080\n"}},
    ]
    script = {"turns": [{"text": "port 8080"}]}
    runner = {"kind": "scripted", "prompt": "Which port?", "script": script}
    parts: list[tuple[str, object]] = [("tasks.0.runner", runner), ("tasks.0.verify", {"checks": checks})]
    [found] = preflight(load(tmp_path, changed(*parts)), examiner)
    assert found.path == "tasks[0].verify.checks[0]"
    assert found.message.startswith("the task's own script fails it: the pattern does not match")
    assert not preflight(load(tmp_path, changed(*parts, ("tasks.0.expect", "failed"))), examiner)


@pytest.mark.parametrize("file", sorted(SUITES.rglob("*.yaml")), ids=lambda path: path.name)
def test_shipped_suites_give_no_warning(file: Path, examiner: Examiner) -> None:
    if "suite:" not in file.read_text("utf-8"):
        return  # a policy or a script beside a suite
    loaded = load_suite(file)
    assert [str(warning) for warning in (*loaded.warnings, *preflight(loaded, examiner))] == []
