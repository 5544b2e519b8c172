"""A run as a whole: order, budget, exclusive tasks, isolation that fails, signals, a full disk, other
people's objects.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from boxeval.errors import StorageError
from boxeval.receipts.trust import Trust
from boxeval.receipts.verify import verify
from boxeval.sandbox import box as box_module
from boxeval.sandbox import settings as box_settings
from boxeval.sandbox.engine import Engine
from boxeval.sandbox.images import ImageInfo
from boxeval.sandbox.ownership import RUN
from boxeval.settings import Settings
from boxeval.verdicts.aggregate import aggregate, exit_code
from engine_runs import HEAD, Silent, forget, run, settings_in, write_suite

ONE = """
tasks:
  - id: one
    workspace: {kind: inline, files: {a: "one\\n"}}
    runner: {kind: external-command, command: "COMMAND"}
    verify: {commands: ["true"]}
"""


@pytest.fixture
def settings(tmp_path: Path, cache: Path) -> Iterator[Settings]:
    settings = settings_in(tmp_path / "bx", cache)
    yield settings
    forget(settings)


def ours(engine: Engine, run_id: str) -> list[str]:
    label = {"label": f"{RUN}={run_id}"}
    containers = [c["Id"] for c in engine.api.containers(all=True, filters=label)]
    return containers + [v["Name"] for v in engine.api.volumes(filters=label)["Volumes"] or ()]


@pytest.mark.contract("S17", "S8")
def test_matrix_order_is_repeat_target_task(tmp_path: Path, settings: Settings) -> None:
    head = HEAD.replace("[{id: local}]", "[{id: x}, {id: z}], repeats: 2")
    task = (
        "\n  - id: {}\n    workspace: {{kind: inline, files: {{a: b}}}}"
        '\n    runner: {{kind: external-command, command: "true"}}\n    verify: {{commands: ["true"]}}'
    )
    suite = write_suite(tmp_path, "\ntasks:" + task.format("b") + task.format("a") + "\n", head)
    _, verified = run(suite, settings, jobs=1)
    order = [(t.repeat, t.target, t.task) for t in verified.trials]
    assert order == [
        (1, "x", "b"), (1, "x", "a"), (1, "z", "b"), (1, "z", "a"),
        (2, "x", "b"), (2, "x", "a"), (2, "z", "b"), (2, "z", "a"),
    ]  # fmt: skip


@pytest.mark.contract("S8", "S19")
def test_past_the_budget_nothing_runs(tmp_path: Path, settings: Settings) -> None:
    head = HEAD.replace("[{id: local}]", "[{id: local}], repeats: 4, maxCostUsd: 0.5")
    suite = write_suite(
        tmp_path,
        """
models: {m: {script: {turns: [{text: "done"}], usage: {input: 1, output: 1, costUsd: 0.3}}}}
tasks:
  - id: one
    workspace: {kind: inline, files: {a: b}}
    runner: {kind: scripted, prompt: go}
    verify: {commands: ["true"]}
""",
        head.replace("timeoutMs: 30000", "timeoutMs: 30000, model: m"),
    )
    _, verified = run(suite, settings, jobs=1)
    # 0.3 + 0.3 exceeds 0.5, so the third and fourth do not run.
    assert [t.outcome.failure_class for t in verified.trials] == [
        None,
        None,
        "budget_exhausted",
        "budget_exhausted",
    ]
    assert [t.outcome.execution for t in verified.trials][2:] == ["not_run", "not_run"]
    assert verified.trials[2].observations.agent is None
    report = aggregate(verified)
    assert exit_code(report) == 3


def test_exclusive_tasks_run_last_and_alone(tmp_path: Path, settings: Settings) -> None:
    task = (
        "\n  - id: {0}\n    exclusive: {1}\n    workspace: {{kind: inline, files: {{a: b}}}}"
        '\n    runner: {{kind: external-command, command: "sleep 0.5"}}\n    verify: {{commands: ["true"]}}'
    )
    text = (
        "\ntasks:"
        + task.format("alone", "true")
        + task.format("a", "false")
        + task.format("b", "false")
        + "\n"
    )
    watcher = Silent()
    run(write_suite(tmp_path, text), settings, watcher, jobs=2)
    entered = [task for task, step in watcher.steps if step == "stage"]
    assert entered[-1] == "alone"
    first_alone = watcher.steps.index(("alone", "stage"))
    assert {task for task, _ in watcher.steps[first_alone:]} == {"alone"}


@pytest.mark.contract("S19", "G33")
def test_isolation_that_cannot_be_had_voids_the_trial(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = box_settings.host_config

    def weak(policy: Any, mounts: Any) -> dict[str, Any]:
        return right(policy, mounts) | {"CapAdd": ["NET_RAW"]}

    monkeypatch.setattr(box_module, "host_config", weak)
    _, verified = run(write_suite(tmp_path, ONE.replace("COMMAND", "touch /workspace/ran")), settings)
    (trial,) = verified.trials
    assert (trial.outcome.failure_class, trial.outcome.weight) == ("isolation_failed", "void")
    assert trial.observations.agent is not None
    assert trial.observations.agent.commands == ()


def start(suite: Path, home: Path, cache: Path, **more: Any) -> subprocess.Popen[bytes]:
    """`boxeval run` as a process of its own, in a home of its own."""
    environ = {**os.environ, "BOXEVAL_HOME": str(home), "BOXEVAL_CACHE_DIR": str(cache)}
    command = [sys.executable, "-m", "boxeval", "run", str(suite), "--out", str(home / "out"), "--jobs", "2"]
    return subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, **more
    )


def wait_for_boxes(engine: Engine, out: Path) -> str:
    """Wait until the run's agent boxes run; return the run's id."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if (out / "plan.json").exists():
            try:
                run_id: str = json.loads((out / "plan.json").read_text())["runId"]
            except ValueError:
                continue
            running = engine.api.containers(filters={"label": [f"{RUN}={run_id}", "boxeval.role=agent"]})
            if running:
                return run_id
        time.sleep(0.05)
    raise AssertionError("no box came up")


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, 131)],
)
@pytest.mark.contract("V34", "S2")
def test_one_signal_seals_what_runs_and_leaves_nothing(
    number: int, code: int, tmp_path: Path, cache: Path, engine: Engine, settings: Settings
) -> None:
    """Known failure B10."""
    home = settings.data_dir.parent
    head = HEAD.replace("[{id: local}]", "[{id: local}], repeats: 3").replace("30000", "300000")
    suite = write_suite(tmp_path, ONE.replace("COMMAND", "sleep 250"), head)
    with start(suite, home, cache, stdin=subprocess.DEVNULL) as process:
        run_id = wait_for_boxes(engine, home / "out")
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == code, (out, err)
    assert ours(engine, run_id) == []
    verified = verify(home / "out", Trust.local(settings))
    assert {trial.outcome.failure_class for trial in verified.trials} == {"cancelled"}
    assert 1 <= len(verified.trials) <= 2
    assert not verified.complete
    assert len(verified.missing) == 3 - len(verified.trials)
    assert b"INCOMPLETE" in out


@pytest.mark.contract("V34")
def test_two_signals_end_it_at_once_and_leave_nothing(
    tmp_path: Path, cache: Path, engine: Engine, settings: Settings
) -> None:
    home = settings.data_dir.parent
    suite = write_suite(tmp_path, ONE.replace("COMMAND", "sleep 250"), HEAD.replace("30000", "300000"))
    with start(suite, home, cache, stdin=subprocess.PIPE) as process:
        run_id = wait_for_boxes(engine, home / "out")
        process.send_signal(signal.SIGINT)
        # Two of the same kind that wait for the process are one to it, so the first must have been seen.
        assert process.stderr is not None
        while b"once more stops at once" not in (line := process.stderr.readline()):
            assert line, "it ended without a word"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, (out, err)
    assert out.startswith(b"INCOMPLETE")
    assert ours(engine, run_id) == []


@pytest.mark.contract("P16")
def test_after_a_killed_controller_boxes_die_and_the_next_start_sweeps(
    tmp_path: Path, cache: Path, engine: Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = settings.data_dir.parent
    # A socket's path must be short, so not below tmp_path.
    temp = Path(tempfile.mkdtemp())
    monkeypatch.setenv("TMPDIR", str(temp))
    suite = write_suite(tmp_path, ONE.replace("COMMAND", "sleep 250"), HEAD.replace("30000", "300000"))
    with start(suite, home, cache, stdin=subprocess.DEVNULL) as process:
        run_id = wait_for_boxes(engine, home / "out")
        for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            os.kill(int(child), signal.SIGKILL)  # the watchdog, which would be quicker
        process.kill()
        process.communicate()
    until = time.monotonic() + 15
    while engine.api.containers(filters={"label": f"{RUN}={run_id}"}):
        assert time.monotonic() < until, "a box outlived its controller"
        time.sleep(0.1)
    watcher = Silent()
    run(write_suite(tmp_path / "next", ONE.replace("COMMAND", "true")), settings, watcher)
    assert ours(engine, run_id) == []
    assert any("left behind" in note for note in watcher.notes)
    temp.rmdir()  # which it can only if it is empty
    verified = verify(home / "out", Trust.local(settings))
    assert not verified.complete
    assert verified.missing == ("one[local]#1",)


def test_a_full_disk_at_the_ledger_ends_the_run_and_keeps_what_is_sealed(
    tmp_path: Path, engine: Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = HEAD.replace("[{id: local}]", "[{id: local}], repeats: 4")
    write = os.pwrite
    lines = 0

    def full(descriptor: int, data: bytes, offset: int) -> int:
        nonlocal lines
        lines += 1
        if lines <= 3:  # the opening line and two trials
            return write(descriptor, data, offset)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    watcher = Silent()
    with pytest.raises(StorageError, match=r"No space left on device") as caught:
        run(write_suite(tmp_path, ONE.replace("COMMAND", "true"), head), settings, watcher, jobs=1)
    assert caught.value.exit_code == 70
    assert "2 trials" in str(caught.value)
    assert ours(engine, watcher.plan.run_id) == []
    monkeypatch.undo()
    verified = verify(watcher.directory, Trust.local(settings))
    assert len(verified.trials) == 2
    assert len(verified.missing) == 2


@pytest.mark.contract("P22")
def test_other_people_s_objects_are_left_alone(
    tmp_path: Path, engine: Engine, settings: Settings, grader_image: ImageInfo
) -> None:
    api = engine.api
    name = f"bystander-{os.getpid()}"
    container = api.create_container(grader_image.image_id, ["true"], name=f"boxeval-{name}")
    api.create_volume(f"boxeval-{name}")
    network = api.create_network(name)
    try:
        run(write_suite(tmp_path, ONE.replace("COMMAND", "true")), settings)
        forget(settings)
        assert api.inspect_container(container["Id"])["State"]["Status"] == "created"
        assert api.inspect_volume(f"boxeval-{name}")["Name"] == f"boxeval-{name}"
        assert api.inspect_network(network["Id"])["Name"] == name
    finally:
        api.remove_container(container["Id"], force=True)
        api.remove_volume(f"boxeval-{name}")
        api.remove_network(network["Id"])


@pytest.mark.contract("V3")
def test_the_ambient_environment_comes_in_only_when_asked_and_without_credentials(
    tmp_path: Path, cache: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAIN_SETTING", "ambient-value")
    monkeypatch.setenv("GH_TOKEN", "canary-credential")
    text = ONE.replace("COMMAND", "env > seen; cat seen")
    for hermetic, plain in (("1", False), ("0", True)):
        wanted = settings_in(settings.data_dir.parent, cache, BOXEVAL_HERMETIC=hermetic)
        end, verified = run(write_suite(tmp_path / hermetic, text), wanted)
        everything = b"".join(p.read_bytes() for p in end.directory.rglob("*") if p.is_file())
        assert (b"ambient-value" in everything) is plain
        assert b"canary-credential" not in everything
        assert verified.plan.hermetic is not plain
