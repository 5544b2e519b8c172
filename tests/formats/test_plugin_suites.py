"""Plugins and skills that a task names (G48, G51): what is refused before anything runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from boxeval.spec.host_options import Marketplace
from suite_samples import changed, load, problems

MANIFEST = ".claude-plugin/marketplace.json"
SKILL = "notes/skills/take/SKILL.md"


def manifest(*plugins: Any, name: object = "tools") -> str:
    return json.dumps({"name": name, "plugins": list(plugins)})


NOTES = {"name": "notes", "source": "./notes"}
FILES = {MANIFEST: manifest(NOTES), SKILL: "---\nname: take\n---\nTake notes.\n"}


def runner(
    agent: str = "codex", prompt: str = "Go on by $notes:take.", **host: Any
) -> list[tuple[str, object]]:
    given: dict[str, Any] = {"kind": "agent", "agent": agent, "prompt": prompt, "host": host}
    return [("tasks.0.runner", {**given, "script": {"turns": [{"text": "x"}]}})]


def plugins(files: dict[str, str] | str = "market", *install: str) -> dict[str, Any]:
    return {
        "marketplace": files if isinstance(files, str) else {"files": files},
        "install": list(install or ("notes",)),
    }


def write(tmp_path: Path, files: dict[str, str] = FILES) -> None:
    for path, text in files.items():
        (tmp_path / "market" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "market" / path).write_text(text)


@pytest.mark.contract("G51")
def test_a_marketplace_is_read_from_beside_the_suite(tmp_path: Path) -> None:
    write(tmp_path)
    loaded = load(tmp_path, changed(*runner(plugins=plugins(), invoke="$notes:take")))
    host = loaded.suite.tasks[0].runner.host
    assert host is not None
    assert host.plugins is not None
    assert host.plugins.marketplace == Marketplace(files=FILES)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"a": "b"}, f"it has no `{MANIFEST}`"),
        (FILES | {MANIFEST: "{"}, "is not JSON"),
        (FILES | {MANIFEST: "[" * 100_000}, "is not JSON"),
        (FILES | {MANIFEST: "[]"}, "has no list `plugins`"),
        (FILES | {MANIFEST: manifest(7)}, "the name of plugin 0 must be"),
        (FILES | {MANIFEST: manifest(NOTES, name="../x")}, "the name of the marketplace must be"),
        (FILES | {MANIFEST: manifest(NOTES, NOTES)}, "has plugin `notes` twice"),
        (FILES | {MANIFEST: manifest(NOTES | {"source": "https://example.com/x"})}, "is not local"),
        (
            FILES | {MANIFEST: manifest(NOTES | {"source": {"source": "github", "repo": "a/b"}})},
            "is not local",
        ),
        (FILES | {MANIFEST: manifest(NOTES | {"source": "./../notes"})}, "is not local"),
        (FILES | {MANIFEST: manifest(NOTES | {"source": "./other"})}, "has no files of its own below"),
        (FILES | {"notes/../x": "y"}, "is no plain relative path"),
        (
            FILES | {MANIFEST: manifest(NOTES, {"name": "more", "source": "./notes"})},
            "must name exactly the plugins",
        ),
    ],
)
@pytest.mark.contract("G51")
def test_only_local_sources_and_only_the_named_plugins(
    tmp_path: Path, files: dict[str, str], said: str
) -> None:
    found = problems(tmp_path, changed(*runner(plugins=plugins(files))))
    assert any("runner.host.plugins" in problem and said in problem for problem in found), found


@pytest.mark.parametrize("harm", ["link", "linked directory", "binary", "missing"])
@pytest.mark.contract("G51")
def test_a_directory_with_links_or_without_text_is_refused(tmp_path: Path, harm: str) -> None:
    write(tmp_path)
    if harm == "link":
        (tmp_path / "market/notes/README.md").symlink_to(tmp_path / "market" / SKILL)
    elif harm == "linked directory":
        (tmp_path / "market").rename(tmp_path / "real")
        (tmp_path / "market").mkdir()
        (tmp_path / "market/notes").symlink_to(tmp_path / "real/notes")
    elif harm == "binary":
        (tmp_path / "market/notes/logo.png").write_bytes(b"\x89PNG\xff")
    path = "nowhere" if harm == "missing" else "market"
    (found,) = problems(tmp_path, changed(*runner(plugins=plugins(path))))
    assert f"runner.host.plugins.marketplace: marketplace `{path}`" in found


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            runner(plugins=plugins(FILES), invoke="$notes:other"),
            "no plugin `notes` with a `skills/other/SKILL.md`",
        ),
        (runner(plugins=plugins(FILES), invoke="$other:take", prompt="$other:take"), "no plugin `other`"),
        (runner(invoke="$notes:take"), "`$notes:take` needs `plugins`, with `notes` among them"),
        (runner(plugins=plugins(FILES), invoke="$notes:take", prompt="Go on."), "it is there 0 times"),
        (runner(invoke="$take", prompt="$take and $take"), "it is there 2 times"),
        (runner(invoke="take"), "host.invoke"),
        (runner("claude", invoke="$take", prompt="$take"), "agent `claude` has no `invoke`"),
        (runner("gemini", plugins=plugins(FILES)), "agent `gemini` has no `plugins`"),
        (runner("opencode", fixtureConfiguration="inert"), "agent `opencode` has no `fixtureConfiguration`"),
    ],
)
@pytest.mark.contract("G48", "G52", "G53")
def test_a_skill_that_is_invoked_is_installed_and_named_once(
    tmp_path: Path, changes: list[tuple[str, object]], said: str
) -> None:
    found = problems(tmp_path, changed(*changes))
    assert any(said in problem for problem in found), found
