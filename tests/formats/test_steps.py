"""`steps`, `writes` and `protect`: what is accepted, and each rule that refuses (contract S36, known failure D15)."""

# ruff: noqa: E501  tables of one case a line
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from boxeval.errors import SuiteError
from boxeval.formats.boundaries import Boundaries, fixture_faults, inline_entries
from boxeval.rules.selection import steps_of
from boxeval.spec.suite import RunnerKind
from boxeval.spec.trial import EntryKind
from suite_samples import RIGHT, changed, load, problems

T = "tasks.0."
ONE: dict[str, Any] = {"id": "one", "command": "true"}
FILES = (T + "workspace.files", {"a.txt": "hello", "src/app.py": "", "tests/unit/test_a.py": ""})
COPY = (T + "workspace", {"kind": "temp-copy", "path": "x"})


def with_steps(*steps: dict[str, Any]) -> list[tuple[str, object]]:
    return [(T + "runner", None), (T + "steps", list(steps))]


@pytest.mark.contract("S36")
@pytest.mark.parametrize(
    "changes",
    [
        [(T + "writes", [])],
        [(T + "writes", ["a.txt", "new/", "deep/new.txt", ".git/", ".git/hooks/x"])],
        [(T + "writes", ["./"])],
        [(T + "writes", [f"f{n}" for n in range(32)])],
        [FILES, (T + "writes", ["src/", "./tests/unit/"]), (T + "protect", ["tests/", "/a.txt", "./src", "*.py", "!app.py"])],
        [FILES, (T + "protect", ["tests/**"])],
        [(T + "workspace.setup", ["true"]), (T + "protect", ["made/"]), (T + "writes", ["a.txt/"])],
        [COPY, (T + "protect", ["made/"])],
        with_steps(ONE, {"id": "two", "command": "false", "writes": ["a.txt"], "timeoutMs": 5, "verify": {"commands": ["true"], "files": {"o": ""}, "timeoutMs": 9}}),
        with_steps({"id": "one", "prompt": "Do it."}, {"id": "two", "command": "true"}),
        [(T + "steps", [ONE]), (T + "runner", {"kind": "external-command", "cwd": "sub", "env": {"A": "b"}})],
        [(T + "steps", [{"id": "one", "prompt": "x"}]), (T + "runner", {"kind": "scripted", "permissions": "read-only"})],
        with_steps(*({"id": f"s{n}", "command": "true"} for n in range(16))),
    ],
)  # fmt: skip
def test_accepted(tmp_path: Path, changes: list[tuple[str, object]]) -> None:
    load(tmp_path, changed(*changes))


@pytest.mark.contract("S3", "S36")
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([(T + "writes", [f"f{n}" for n in range(33)])], "tasks[0].writes: has more than 32 items"),
        ([(T + "writes", ["/abs"])], "tasks[0].writes[0]: `/abs` is absolute"),
        ([(T + "writes", ["ok", "a/../../x"])], "tasks[0].writes[1]: `a/../../x` leaves the workspace with `..`"),
        ([(T + "writes", ["a/../b"])], "leaves the workspace with `..`"),
        ([(T + "writes", ["src/*.py"])], "`src/*.py` is a glob; name files, or directories with `/` at the end"),
        ([(T + "writes", ["a?"])], "is a glob"),
        ([(T + "writes", ["[ab]"])], "is a glob"),
        ([(T + "writes", [""])], "tasks[0].writes[0]: must not be empty"),
        ([(T + "writes", ["a\\b"])], "has a backslash"),
        ([(T + "writes", [" a"])], "has a backslash, a space at an end"),
        ([(T + "writes", ["a\nb"])], "a character that cannot be shown"),
        ([(T + "writes", ["."])], "`.` is the workspace itself; write `./` for all in it but `.git`"),
        ([(T + "writes", ["src", "./src"])], "tasks[0].writes[1]: `./src` is the same place as `src`"),
        ([(T + "writes", ["n" * 256])], "has a name of more than 255 bytes"),
        ([(T + "writes", "src/")], "tasks[0].writes: must be a list, not `src/`"),
        ([FILES, (T + "writes", ["src"])], "tasks[0].writes[0]: `src` is a directory; write `src/` for all in it"),
        ([FILES, (T + "writes", ["a.txt/"])], "tasks[0].writes[0]: `a.txt` is a file; write it without `/`"),
        ([FILES, (T + "writes", ["a.txt/b"])], "tasks[0].writes[0]: `a.txt` is a file"),
        ([FILES, (T + "protect", ["tets/"])], "tasks[0].protect[0]: `tets/` matches nothing in the workspace"),
        ([FILES, (T + "protect", ["Tests/"])], "`Tests/` matches nothing"),
        ([FILES, (T + "protect", ["a.txt/"])], "`a.txt/` matches nothing"),
        ([FILES, (T + "protect", ["/app.py"])], "`/app.py` matches nothing"),
        ([FILES, (T + "protect", ["tests/", "*.pth"])], "tasks[0].protect[1]: `*.pth` matches nothing"),
        ([(T + "protect", [""])], "tasks[0].protect[0]: is empty and matches nothing"),
        ([(T + "protect", ["../x"])], "has `..` and can never match"),
        ([(T + "protect", ["/workspace/a.txt"])], "is outside the workspace"),
        ([(T + "protect", ["!a.txt"])], "starts the list with `!`"),
        (with_steps(), "tasks[0]: key `runner` is missing"),
        (with_steps(*({"id": f"s{n}", "command": "true"} for n in range(17))), "tasks[0].steps: has more than 16 items"),
        (with_steps(ONE, ONE), "tasks[0].steps[1].id: `one` is already the id of steps[0]"),
        (with_steps(ONE, {"id": "ONE", "command": "true"}), "`ONE` is already the id of steps[0]"),
        (with_steps({"id": "..", "command": "true"}), "tasks[0].steps[0].id: `..` cannot be an id"),
        (with_steps({"id": "one"}), "tasks[0].steps[0]: needs exactly one of `prompt` and `command`"),
        (with_steps({**ONE, "prompt": "x"}), "needs exactly one of `prompt` and `command`"),
        (with_steps({"id": "one", "prompt": " "}), "tasks[0].steps[0].prompt: is empty"),
        (with_steps({**ONE, "command": "a\0b"}), "tasks[0].steps[0].command: has a NUL character"),
        (with_steps({**ONE, "writes": ["/x"]}), "tasks[0].steps[0].writes[0]: `/x` is absolute"),
        (with_steps({**ONE, "writes": ["a.txt/"]}), "tasks[0].steps[0].writes[0]: `a.txt` is a file"),
        (with_steps({**ONE, "verify": {"commands": []}}), "tasks[0].steps[0].verify.commands: must not be empty"),
        (with_steps({**ONE, "verify": {"commands": ["true"], "files": {"../x": ""}}}), "leaves the workspace with `..`"),
        (with_steps({**ONE, "runner": {}}), "tasks[0].steps[0]: unknown key `runner`"),
        ([*with_steps({"id": "one", "prompt": "x"}), ("matrix.targets.0.model", None)], "tasks[0].steps: a prompt needs `script`, or a model"),
        ([(T + "steps", [ONE])], "tasks[0].runner.command: `command` cannot stand beside `steps`"),
        ([(T + "steps", [{"id": "one", "prompt": "x"}]), (T + "runner", {"kind": "external-command"})], "needs a runner of kind `scripted` or `agent`, and this task has `external-command`"),
    ],
)  # fmt: skip
def test_refused(tmp_path: Path, changes: list[tuple[str, object]], said: str) -> None:
    found = problems(tmp_path, changed(*changes))
    assert len(found) == 1, found
    assert said in found[0]


@pytest.mark.contract("S36")
def test_links_of_a_fixture_are_no_way_around(tmp_path: Path) -> None:
    suite = load(tmp_path, changed(COPY, (T + "writes", ["way/x", "way/", "real/"]))).suite
    entries = {"way": EntryKind.SYMLINK, "real": EntryKind.DIRECTORY}
    found = list(fixture_faults(Boundaries.of(suite.tasks[0]), entries))
    assert [place for place, _ in found] == [("writes", 0), ("writes", 1)]
    assert all("goes through the link `way`" in fault for _, fault in found)


def test_an_inline_fixture_has_the_directories_of_its_paths() -> None:
    assert inline_entries(["./a//b", "c"]) == {
        "a": EntryKind.DIRECTORY,
        "a/b": EntryKind.FILE,
        "c": EntryKind.FILE,
    }


def test_a_step_falls_back_on_its_task(tmp_path: Path) -> None:
    steps: list[dict[str, Any]] = [
        {"id": "one", "command": "true", "timeoutMs": 70_000},
        {"id": "two", "prompt": "x", "writes": [], "timeoutMs": 5, "verify": {"commands": ["true"]}},
        {"id": "three", "command": "true", "verify": {"commands": ["true"], "timeoutMs": 7}},
    ]
    text = changed(*with_steps(*steps), (T + "writes", ["a.txt"]), (T + "timeoutMs", 60_000))
    suite = load(tmp_path, text).suite
    one, two, three = steps_of(suite, suite.tasks[0], suite.matrix.targets[0])
    assert (one.writes, two.writes, three.writes) == (("a.txt",), (), ("a.txt",))
    assert (one.timeout_ms, two.timeout_ms, three.timeout_ms) == (60_000, 5, 60_000)
    assert (two.verify_timeout_ms, three.verify_timeout_ms) == (60_000, 7)
    assert (one.runner.kind, two.runner.kind) == (RunnerKind.EXTERNAL_COMMAND, RunnerKind.SCRIPTED)
    assert (one.runner.command, two.runner.prompt) == ("true", "x")


def test_a_task_without_a_turn_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="key `runner` is missing; a task has it, or `steps`"):
        load(tmp_path, RIGHT.replace("    runner:", "    title: x #"))
