"""The operator's machine: what a run may change there, what of it may get into a box, and who may start one."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from docker.errors import NotFound

import boxeval
from boxeval.sandbox.engine import Engine
from boxeval.sandbox.ownership import RUN
from engine_runs import HEAD, write_suite

CANARY = "canary-5d1f7c"
SUITE = """
tasks:
  - id: look
    workspace:
      kind: inline
      files: {a: "one\\n"}
      setup: ["(env; cat /proc/[0-9]*/environ ~/.gitconfig ~/.ssh/id || :) > seen 2>&1"]
    runner:
      kind: external-command
      command: "cat seen; env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline ~/.gitconfig ~/.ssh/id || :; sleep 3"
    verify: {commands: ["env; cat /proc/[0-9]*/environ || :"]}
"""


def tree(root: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file below `root` with mode, modification time and content."""
    return {
        str(place.relative_to(root)): (
            place.stat().st_mode,
            place.stat().st_mtime_ns,
            place.read_bytes() if place.is_file() else b"",
        )
        for place in sorted(root.rglob("*"))
    }


@pytest.fixture
def operator(tmp_path: Path) -> Path:
    """A home with the usual secrets in it."""
    home = tmp_path / "operator"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id").write_text(f"{CANARY}-ssh\n")
    (home / ".gitconfig").write_text(f"[user]\n\tname = {CANARY}-git\n")
    (home / ".docker").mkdir()
    proxies = {"default": {"httpProxy": f"http://{CANARY}-proxy:1", "noProxy": f"{CANARY}-none"}}
    (home / ".docker" / "config.json").write_text(json.dumps({"proxies": proxies}))
    return home


@pytest.mark.contract("V1", "V4", "P21", "G50")
def test_nothing_of_the_operator_gets_in_and_nothing_of_his_home_changes(
    operator: Path, tmp_path: Path, cache: Path, engine: Engine
) -> None:
    """Known failures J1, J3 and, for a command that completes the fixture, J5."""
    before = tree(operator)
    suite = write_suite(tmp_path, SUITE)
    results = tmp_path / "results"
    names = (
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GH_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "SSH_AUTH_SOCK",
        "HTTP_PROXY",
    )
    environ = {
        **os.environ,
        **{name: f"{CANARY}-{name.lower()}" for name in names},
        "HOME": str(operator),
        "BOXEVAL_DATA_DIR": str(results),
        "BOXEVAL_CACHE_DIR": str(cache),
    }
    environ.pop("BOXEVAL_HOME", None)
    command = [
        sys.executable,
        "-m",
        "boxeval",
        "run",
        str(suite),
        "--out",
        str(results / "run"),
        "--format",
        "json",
    ]
    seen: list[str] = []
    with subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        while process.poll() is None:
            run_label = {"label": RUN}
            for container in engine.api.containers(all=True, filters=run_label):
                # One that has just been removed shows nothing.
                if container["Labels"].get(RUN, "") in _run_ids(results):
                    with contextlib.suppress(NotFound):
                        seen.append(json.dumps(engine.api.inspect_container(container["Id"])))
            seen.append(_command_lines(process.pid))
            time.sleep(0.3)
        out, err = process.communicate()
    assert process.returncode == 0, err
    assert len(seen) > 6
    assert CANARY not in "".join(seen)
    assert CANARY not in out + err
    for place in results.rglob("*"):
        if place.is_file():
            assert CANARY.encode() not in place.read_bytes(), place
    assert tree(operator) == before


def _run_ids(results: Path) -> set[str]:
    try:
        return {json.loads((results / "run" / "plan.json").read_text())["runId"]}
    except (OSError, ValueError):
        return set()


def _command_lines(but: int) -> str:
    """Every command line on the machine, except that of the controller itself, whose paths are the test's own."""
    lines = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        if place.parent.name != str(but):
            try:
                lines.append(place.read_text(errors="replace"))
            except OSError:
                continue
    return "".join(line for line in lines if "pytest" not in line)


def readable_python() -> str | None:
    """A Python of our own version that another user can start: ours may lie in a private home."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, f"/usr/bin/{version}", shutil.which(version) or ""):
        probe = ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", candidate, "-c", "pass"]
        if candidate and subprocess.run(probe, capture_output=True, check=False).returncode == 0:
            return candidate
    return None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_user_of_the_engine_s_group_needs_no_root(engine: Engine) -> None:
    socket = Path(engine.host.removeprefix("unix://"))
    python = readable_python()
    if python is None:
        pytest.skip("no Python of this version that another user may start")
    # pytest's own directories are closed to others.
    home = Path(subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True).stdout.strip())
    try:
        suite = write_suite(home, SUITE.replace("; sleep 3", ""), HEAD)
        for place in (home, *home.rglob("*")):
            os.chown(place, 12345, 12345)
        packages = [entry for entry in sys.path if entry.endswith("site-packages")]
        sources = str(Path(boxeval.__file__).parent.parent)
        environ = {
            "HOME": str(home),
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": os.pathsep.join([sources, *packages]),
        }
        group = f"--groups=12345,{socket.stat().st_gid}"
        become = ["setpriv", "--reuid=12345", "--regid=12345", group, python]
        done = subprocess.run(
            [*become, "-m", "boxeval", "run", str(suite), "--out", str(home / "out")],
            env=environ,
            cwd=home,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        verified = subprocess.run(
            [*become, "-m", "boxeval", "verify", str(home / "out")],
            env=environ,
            capture_output=True,
            check=False,
        )
        assert verified.returncode == 0, verified.stderr
        assert {place.stat().st_uid for place in home.rglob("*")} == {12345}
        cleaned = subprocess.run(
            [*become, "-m", "boxeval", "clean", "--cache"],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert cleaned.returncode == 0, cleaned.stderr
    finally:
        shutil.rmtree(home)
