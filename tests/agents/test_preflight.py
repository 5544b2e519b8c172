"""What the words of the probe mean: one name too many is a breach (G56)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from boxeval.agents import preflight
from boxeval.spec.agent_record import Preflight

GOOD = """\
env PATH
env HOME
mount /
mount /proc
mount /proc/kcore
mount /dev/shm
mount /workspace
mount /home/agent
device lo
private good
version codex-cli 0.171.0
"""


def read(text: str) -> Preflight:
    return preflight.read(text.encode(), ["PATH", "HOME"], ["/reference"], [".codex/config.toml"], 5)


@pytest.mark.contract("G56")
def test_a_box_as_promised() -> None:
    found = read(GOOD + "mount /reference\nhome .codex\n")
    assert found == Preflight(version="codex-cli 0.171.0", wall_ms=5)


@pytest.mark.parametrize(
    ("more", "breach"),
    [
        ("env GH_TOKEN\n", "the environment has GH_TOKEN"),
        ("mount /root/project\n", "there is a mount at /root/project"),
        ("mount /processed\n", "there is a mount at /processed"),
        ("device eth0\n", "there is a network device eth0"),
        ("route eth0\n", "there is a route by eth0"),
        ("home .netrc\n", "the home has .netrc"),
    ],
)
@pytest.mark.contract("G50", "G56")
def test_one_thing_too_many_is_a_breach(more: str, breach: str) -> None:
    assert read(GOOD + more).breaches == (breach,)


@pytest.mark.contract("G56")
def test_no_private_storage_and_no_version_are_told() -> None:
    assert read(GOOD.replace("private good\n", "")).breaches == (
        "the home is no private storage that can be written and read",
    )
    assert (
        read(GOOD.replace("version codex-cli 0.171.0\n", "")).broken == "the agent does not say its version"
    )
    assert read("").broken == "the probe could not look at the box"


@pytest.mark.contract("G56")
def test_the_script_says_what_is_there(tmp_path: Path) -> None:
    home = tmp_path / "private"
    home.mkdir()
    (home / ".netrc").write_text("x")
    (home / "notes").write_text("x")
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "TWO_LINES": "a\nNOT_A_NAME=b"}
    job = preflight.probe(("sh", "-c", "echo tool 1.2; echo more"), env)
    done = subprocess.run(job.argv, env=job.env, cwd=job.cwd, capture_output=True, check=True)
    lines = done.stdout.decode().splitlines()
    assert {line for line in lines if line.startswith("env ")} == {"env PATH", "env HOME", "env TWO_LINES"}
    assert {line for line in lines if line.startswith("home ")} == {"home .netrc", "home notes"}
    assert {"private good", "version tool 1.2", "device lo", "mount /"} <= set(lines)
    assert not (home / ".probe").exists()
