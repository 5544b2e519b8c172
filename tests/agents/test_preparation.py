"""Plugins, named skills and stray configuration before a fresh request (G48, G49, G51, G52): the script, really run."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from boxeval.agents import preparation
from boxeval.agents.preparation import PluginProgram
from boxeval.rules.skill_token import occurrences
from boxeval.sandbox.job import HOME, WORKSPACE, Job
from boxeval.spec.agent_record import Preparation
from boxeval.spec.host_options import HostOptions

SKILL = "---\nname: take\n---\nTake notes.\n"
FILES = {
    ".claude-plugin/marketplace.json": json.dumps(
        {"name": "tools", "plugins": [{"name": "notes", "source": "./plugins/notes"}]}
    ),
    "plugins/notes/.claude-plugin/plugin.json": '{"name": "notes", "version": "1.0.0"}',
    "plugins/notes/skills/take/SKILL.md": SKILL,
}
OPTIONS = HostOptions.model_validate(
    {"plugins": {"marketplace": {"files": FILES}, "install": ("notes",)}, "invoke": "$notes:take"}
)
PROGRAM = PluginProgram(("echo", "added"), ("echo", "installed"), ".agent/plugins/cache")
CACHE = "home/.agent/plugins/cache/tools/notes"


def prepare(
    tmp_path: Path, options: HostOptions, configuration: tuple[str, ...] = (), cwd: str = WORKSPACE
) -> Preparation:
    """Run the script on this machine, with both roots moved below `tmp_path`. It only reads."""
    job = preparation.job(options, PROGRAM, configuration, Job((), cwd=cwd))
    assert job is not None
    (tmp_path / "work").mkdir(exist_ok=True)
    script = job.argv[2].replace(WORKSPACE, str(tmp_path / "work")).replace(HOME, str(tmp_path / "home"))
    end = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
    return preparation.read(end.stdout, options)


def install(tmp_path: Path, **changed: str) -> Path:
    place = tmp_path / CACHE / "1.0.0"
    for path, text in (FILES | changed).items():
        if path.startswith("plugins/notes/"):
            file = place / path.removeprefix("plugins/notes/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    return place


@pytest.mark.contract("G51")
def test_what_was_installed_is_what_the_marketplace_has(tmp_path: Path) -> None:
    install(tmp_path)
    (plugin,) = prepare(tmp_path, OPTIONS).plugins
    assert (plugin.id, plugin.version, plugin.files) == ("notes@tools", "1.0.0", 2)


@pytest.mark.parametrize("harm", ["nothing", "changed", "more", "less", "link", "twice"])
@pytest.mark.contract("G51")
def test_an_installation_that_differs_lets_nothing_begin(tmp_path: Path, harm: str) -> None:
    place = tmp_path / CACHE / "1.0.0"
    if harm != "nothing":
        install(tmp_path)
    if harm == "changed":
        (place / "skills/take/SKILL.md").write_text("Something else.")
    elif harm == "more":
        (place / "hook.sh").write_text("")
    elif harm == "less":
        (place / "skills/take/SKILL.md").unlink()
    elif harm == "link":
        (place / "skills/take/SKILL.md").unlink()
        (tmp_path / "SKILL.md").write_text(SKILL)
        (place / "skills/take/SKILL.md").symlink_to(tmp_path / "SKILL.md")
    elif harm == "twice":
        place.rename(place.with_name("2"))
        install(tmp_path)
    found = prepare(tmp_path, OPTIONS)
    assert found.fault
    assert not found.plugins


@pytest.mark.parametrize("harm", [None, "missing", "link", "parent", "large", "fifo"])
@pytest.mark.contract("G49")
def test_a_repository_s_skill_is_a_bounded_regular_file_without_links(
    tmp_path: Path, harm: str | None
) -> None:
    real = tmp_path / "work/.agents/skills/guide/SKILL.md"
    real.parent.mkdir(parents=True)
    if harm == "link":
        (tmp_path / "elsewhere.md").write_text(SKILL)
        real.symlink_to(tmp_path / "elsewhere.md")
    elif harm == "fifo":
        os.mkfifo(real)
    elif harm != "missing":
        real.write_text("x" * (65_537 if harm == "large" else 65_536))
    if harm == "parent":
        (tmp_path / "work/.agents/skills").rename(tmp_path / "skills")
        (tmp_path / "work/.agents/skills").symlink_to(tmp_path / "skills")
    found = prepare(tmp_path, HostOptions(invoke="$guide"))
    assert (found.fault is None) == (harm is None), found


@pytest.mark.contract("G52")
def test_configuration_in_the_workspace_is_refused_without_the_opt_in(tmp_path: Path) -> None:
    assert prepare(tmp_path, HostOptions(), (".codex",)).fault is None
    (tmp_path / "work/.codex").symlink_to("nowhere")
    fault = prepare(tmp_path, HostOptions(), (".codex",)).fault
    assert fault is not None and ".codex, which the agent takes for its own configuration" in fault
    assert preparation.job(HostOptions(fixture_configuration="inert"), PROGRAM, (".codex",), Job(())) is None
    (tmp_path / "work/.codex").rename(tmp_path / "codex")
    (tmp_path / "work/a b/c/d").mkdir(parents=True)
    for place in ("a b/c/d", "a b/c", "a b"):
        (tmp_path / "codex").rename(tmp_path / "work" / place / ".codex")
        assert (prepare(tmp_path, HostOptions(), (".codex",), f"{WORKSPACE}/a b/c").fault is None) == (
            place == "a b/c/d"
        )
        (tmp_path / "work" / place / ".codex").rename(tmp_path / "codex")


@pytest.mark.parametrize(
    "said", [b"", b"done", b"x\ndone\n", b"\xff\ndone\n", b"a  ./notes\ndone\n", b"fault \x1b[2J\n"]
)
def test_an_answer_that_was_not_foreseen_is_no_installation(said: bytes) -> None:
    assert preparation.read(said, OPTIONS).fault


@pytest.mark.parametrize(
    ("prompt", "count"),
    [
        ("Use $notes:take.", 1),
        ("$notes:take", 1),
        ("$notes:take and $notes:take", 2),
        ("$notes:takeover, $notes:take-two, x$notes:take, $$notes:take, $notes", 0),
    ],
)
@pytest.mark.contract("G48")
def test_exactly_the_token_counts(prompt: str, count: int) -> None:
    assert occurrences("$notes:take", prompt) == count
