"""`validate` and `schema`, and that nothing runs without an engine."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

import boxeval
from boxeval.cli.app import call

GOOD = """\
version: 2
suite: {id: s, title: S, visibility: local}
matrix: {targets: [{id: a}, {id: b}]}
tasks:
  - id: one
    workspace: {kind: inline, files: {a.txt: x}}
    runner: {kind: external-command, command: "touch CANARY"}
    verify: {commands: ["true"]}
    timeoutMs: 1000
"""


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.yaml"
    path.write_text(GOOD.replace("CANARY", str(tmp_path / "canary")))
    return path


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    path = tmp_path / "bad.yaml"
    path.write_text(GOOD.replace("timeoutMs: 1000", "timeoutMs: 1:30\n    wierd: 1"))
    return path


@pytest.mark.contract("S1", "S2")
def test_validate_a_good_suite(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["validate", str(good)]) == 0
    assert capsys.readouterr().out == f"{good}: good: 1 task for 2 targets\n"
    assert call(["validate", "--suite", str(good), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["valid"], found["suite"], found["tasks"], found["targets"]) == (True, "s", 1, 2)


@pytest.mark.contract("S2", "S3")
def test_validate_a_bad_suite(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["validate", str(bad)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    assert [line.startswith(f"{bad}:{number}:") for line, number in zip(lines, (9, 10), strict=True)] == [
        True,
        True,
    ]
    assert "wierd" in lines[1]
    assert call(["validate", str(bad), "--json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert found["valid"] is False
    assert [problem["line"] for problem in found["problems"]] == [9, 10]


def test_validate_reads_the_fixtures_and_tells_where_they_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "passwd").symlink_to("/etc/passwd")
    task = GOOD.partition("tasks:\n")[2]
    text = GOOD
    for number, path in enumerate(("tree", "nowhere"), 2):
        text += task.replace("id: one", f"id: t{number}").replace(
            "{kind: inline, files: {a.txt: x}}", f"{{kind: temp-copy, path: {path}}}"
        )
    Path("s.yaml").write_text(text)
    assert call(["validate", "s.yaml"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "s.yaml:11:40: tasks[1].workspace.path: workspace `tree`: `passwd` is a symlink that leads out of the tree, "
        "to `/etc/passwd`",
        "s.yaml:16:40: tasks[2].workspace.path: workspace `nowhere`: does not exist in `.`",
    ]


@pytest.mark.contract("G31")
@pytest.mark.parametrize(
    ("source", "name"),
    [
        (Path(boxeval.__file__).parent.parent, "boxeval itself"),
        (Path("home/boxeval"), "boxeval's data directory"),
        (Path("home/boxeval/data/keys"), "boxeval's data directory"),
        (Path("home/.ssh"), "~/.ssh"),
        (Path(), "boxeval's data directory"),
        (Path("suite"), "the suite file"),
        (Path("suite/data"), None),
        (Path("home/work"), None),
    ],
)
def test_a_policy_may_not_mount_what_boxes_must_not_see(
    source: Path,
    name: str | None,
    tools: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for place in ("home/boxeval/data/keys", "home/.ssh", "home/work", "suite/data"):
        (tools / place).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tools / "home"))
    monkeypatch.setenv("BOXEVAL_HOME", str(tools / "home/boxeval"))
    suite, mounted = tools / "suite" / "s.yaml", (tools / source).resolve()
    suite.write_text(GOOD.replace("tasks:", "defaults: {policy: p.yaml}\ntasks:"))
    (tools / "suite" / "p.yaml").write_text(
        f"version: 1\nid: p\nmounts: [{{source: {mounted}, target: /d}}]\n"
    )
    assert call(["validate", str(suite)]) == (2 if name else 0)
    if name:
        said = f"{suite}: policy p.yaml: `{mounted}` is, holds or lies in {name}\n"
        assert capsys.readouterr().err == said


def test_a_long_path_is_shown_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    (deep / "bad.yaml").write_text("version: 2\nsuit: x\n")
    assert call(["validate", str(deep / "bad.yaml")]) == 2
    assert f"{deep}/bad.yaml:2:1: unknown key `suit`; did you mean `suite`?\n" in capsys.readouterr().err


def test_validate_warns_of_what_is_surely_not_meant(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good.write_text(good.read_text().replace('["true"]', '["true"], forbidPaths: [A.txt]'))
    assert call(["validate", str(good)]) == 0
    said = capsys.readouterr()
    warning = "`A.txt` matches no file of the workspace; only new files can"
    assert said.err == f"warning: {good}:8:48: tasks[0].verify.forbidPaths[0]: {warning}\n"
    assert call(["validate", str(good), "--json"]) == 0
    assert [one["message"] for one in json.loads(capsys.readouterr().out)["warnings"]] == [warning]


@pytest.mark.parametrize("command", ["validate", "run"])
def test_a_suite_that_is_not_there(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call([command, "none.yaml"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("none.yaml: ")


@pytest.mark.parametrize("name", ["suite", "policy", "report"])
def test_schemas_are_schemas(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["schema", name]) == 0
    jsonschema.Draft202012Validator.check_schema(json.loads(capsys.readouterr().out))


def test_without_an_engine_nothing_runs_on_the_host(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Known failure C12."""
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    assert call(["run", str(good), "--quiet"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("boxeval: no Docker Engine: /nonexistent/docker.sock does not exist;")
    assert said.err.count("\n") == 1
    assert not (tmp_path / "canary").exists()
