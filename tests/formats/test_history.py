"""What Git may be told to write into a fixture, each bound at its edge and past it (contract G57)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from boxeval.formats.fixtures import fixture_recipe, read_fixture
from boxeval.formats.history_checks import MAX_BYTES, history_faults
from boxeval.spec.workspace import Workspace
from suite_samples import changed, problems

OWN = "is Git's own; write hooks with `hooks`"


def generated(*commits: dict[str, Any], **fields: Any) -> Workspace:
    tree = {"kind": "generated", "commits": list(commits), **fields}
    return Workspace.model_validate(tree, by_alias=True, by_name=False, strict=False)


def commit(message: str = "m", **files: str) -> dict[str, Any]:
    return {"message": message, "files": files or {"a": "1"}}


def faults(workspace: Workspace) -> list[str]:
    return [".".join(map(str, path)) + ": " + message for path, message in history_faults(workspace)]


def files(count: int) -> dict[str, str]:
    return {f"f{n}": "" for n in range(count)}


@pytest.mark.contract("G57")
def test_bounds_at_their_edge() -> None:
    assert faults(generated(*(commit() for _ in range(128)))) == []
    assert (
        faults(
            generated({"message": "m", "files": files(1000)}, files=dict.fromkeys(map(str, range(24)), ""))
        )
        == []
    )
    # 2 bytes of message and path, and the rest of 32 MiB as content.
    assert faults(generated(commit(a="x" * (MAX_BYTES - 2)))) == []
    assert faults(generated(commit("é" * 2048))) == []


@pytest.mark.contract("G57")
def test_bounds_past_their_edge(tmp_path: Path) -> None:
    many = {"kind": "generated", "commits": [commit() for _ in range(129)]}
    [said] = problems(tmp_path, changed(("tasks.0.workspace", many)))
    assert said.startswith("tasks[0].workspace.commits: ") and "128" in said
    assert faults(generated({"message": "m", "files": files(1025)})) == [
        ": Git is to write 1025 files; at most 1024"
    ]
    assert faults(
        generated({"message": "m", "files": files(1000)}, files=dict.fromkeys(map(str, range(25)), ""))
    ) == [": Git is to write 1025 files; at most 1024"]
    [said] = faults(generated(commit(a="x" * (MAX_BYTES - 1))))
    assert said == ": Git is to write 33554433 bytes; at most 33554432"
    assert faults(generated(commit("é" * 2048 + "x"))) == ["commits.0.message: has more than 4096 bytes"]


@pytest.mark.contract("G57")
def test_programs_are_bounded() -> None:
    assert faults(generated(commit(), bin={f"p{n}": "x" for n in range(64)})) == []
    assert faults(generated(commit(), bin={f"p{n}": "x" for n in range(65)})) == [
        "bin: has 65 programs; at most 64"
    ]
    assert faults(generated(commit(), bin={"p": "x" * (1024 * 1024 - 1)})) == []
    assert faults(generated(commit(), bin={"p": "x" * 1024 * 1024})) == [
        "bin: has 1048577 bytes; at most 1048576"
    ]
    for name in ("../p", "a/b", ".p", "1p", "p" * 65, ""):
        with pytest.raises(ValidationError):
            generated(commit(), bin={name: "x"})


@pytest.mark.contract("G57")
@pytest.mark.parametrize(
    ("workspace", "said"),
    [
        (
            generated(commit(**{".git/config": ""})),
            ["commits.0.files..git/config: `.git/config` is Git's own; write hooks with `hooks`"],
        ),
        (
            generated(commit(**{"a/.GIT/x": ""})),
            ["commits.0.files.a/.GIT/x: `a/.GIT/x` is Git's own; write hooks with `hooks`"],
        ),
        (
            generated(commit(a=""), commit(A="")),
            ["commits.1.files.A: `A` is `a` but for upper and lower case"],
        ),
        (
            generated(commit(a=""), files={"A/b": ""}),
            ["commits.0.files.a: `a` is a file, and `A/b` needs a directory of that name"],
        ),
        (generated(commit(**{"../a": ""})), ["commits.0.files.../a: `../a` leaves the workspace with `..`"]),
        (generated(commit("  \n")), ["commits.0.message: is blank"]),
        (generated(commit(), staged=["a"]), ["staged.0: `a` is not one of `files`"]),
        (generated(commit(), files={"b": ""}, staged=["b", "b"]), ["staged.1: `b` is named twice"]),
        (generated(commit(), commitFiles=True), ["commitFiles: needs `files`"]),
        (
            generated(commit(), hooks={"../x": ""}),
            ["hooks.../x: `../x` is not a hook that Git runs in a work tree"],
        ),
        (
            Workspace.model_validate({"kind": "generated"}, strict=False),
            [": kind `generated` needs `commits`"],
        ),
    ],
)
def test_what_is_refused(workspace: Workspace, said: list[str]) -> None:
    assert faults(workspace) == said


def test_the_same_file_may_change_from_commit_to_commit() -> None:
    assert faults(generated(commit(a="1"), commit(a="2"), files={"a": "3"}, staged=["a"])) == []


def test_other_kinds_take_none_of_it(tmp_path: Path) -> None:
    for key, value in (("commits", [commit()]), ("staged", ["a.txt"]), ("commitFiles", True)):
        [said] = problems(tmp_path, changed((f"tasks.0.workspace.{key}", value)))
        assert said == f"tasks[0].workspace.{key}: kind `inline` does not take `{key}`"


@pytest.mark.contract("G69")
def test_all_that_is_declared_is_in_the_recipe_of_the_fixture(tmp_path: Path) -> None:
    made = [
        generated(commit(a="1")),
        generated(commit(a="2")),
        generated(commit("n", a="1")),
        generated(commit(a="1"), commit(a="1")),
        generated(commit(a="1"), files={"b": ""}),
        generated(commit(a="1"), files={"b": ""}, staged=["b"]),
        generated(commit(a="1"), files={"b": ""}, commitFiles=True),
        generated(commit(a="1"), hooks={"pre-commit": ""}),
        generated(commit(a="1"), bin={"greet": "x"}),
    ]
    recipes = [fixture_recipe(one, read_fixture(one, tmp_path), "image") for one in made]
    assert len(set(recipes)) == len(made)
    assert recipes[0] == fixture_recipe(
        made[0], read_fixture(made[0], tmp_path / "elsewhere"), "another image"
    )
