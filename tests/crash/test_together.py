"""Several at once: runs in one results directory, resumes of one run, other people on the engine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker.types import IPAMConfig, IPAMPool

from boxeval.receipts.trust import Trust
from boxeval.receipts.verify import VerifiedRun, verify
from boxeval.sandbox.engine import Engine
from boxeval.sandbox.images import ImageInfo
from boxeval.sandbox.ownership import RUN
from boxeval.settings import Settings
from engine_runs import HEAD, forget, run, settings_in, write_suite

TWO = """
tasks:
  - id: quick
    workspace: {kind: inline, files: {a: "one\\n"}}
    runner: {kind: external-command, command: "true"}
    verify: {commands: ["true"]}
  - id: slow
    workspace: {kind: inline, files: {a: "one\\n"}}
    runner: {kind: external-command, command: "sleep 2"}
    verify: {commands: ["true"]}
"""
pytestmark = pytest.mark.engine


@pytest.fixture
def settings(tmp_path: Path, cache: Path) -> Iterator[Settings]:
    settings = settings_in(tmp_path / "bx", cache)
    yield settings
    forget(settings)


def boxeval(settings: Settings, *arguments: str) -> subprocess.Popen[str]:
    """A run in a process of its own, in this home."""
    environ = {
        **os.environ,
        "BOXEVAL_HOME": str(settings.data_dir.parent),
        "BOXEVAL_CACHE_DIR": str(settings.cache_dir),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "boxeval", "run", *arguments],
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def kill_after_the_first_trial(process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    while "[1/2]" not in (line := process.stderr.readline()):
        assert line, "it ended before its first trial"
    process.kill()
    process.communicate()


def verified(settings: Settings, directory: Path) -> VerifiedRun:
    return verify(directory, Trust.local(settings))


def gone(engine: Engine, run_id: str) -> bool:
    label = {"label": f"{RUN}={run_id}"}
    return (
        not engine.api.containers(all=True, filters=label)
        and not engine.api.volumes(filters=label)["Volumes"]
    )


@pytest.fixture
def bystanders(engine: Engine, grader_image: ImageInfo) -> Iterator[None]:
    """What other people have on the engine: a stopped container and a volume with names like ours, and 30 networks.

    All must be there in the end, as they were.
    """
    api, name = engine.api, f"bystander-{os.getpid()}"
    container = api.create_container(grader_image.image_id, ["true"], name=f"boxeval-{name}")["Id"]
    api.create_volume(f"boxeval-{name}")
    networks = []
    try:
        for number in range(30):
            pool = IPAMConfig(pool_configs=[IPAMPool(subnet=f"10.213.{number}.0/28")])
            networks.append(api.create_network(f"{name}-{number}", ipam=pool)["Id"])
        yield
        assert api.inspect_container(container)["State"]["Status"] == "created"
        assert api.inspect_volume(f"boxeval-{name}")["Name"] == f"boxeval-{name}"
        assert all(api.inspect_network(network)["Id"] == network for network in networks)
    finally:
        api.remove_container(container, force=True)
        api.remove_volume(f"boxeval-{name}")
        for network in networks:
            api.remove_network(network)


@pytest.mark.contract("P16", "P22", "P19")
@pytest.mark.usefixtures("bystanders")
def test_a_killed_run_disturbs_nobody_and_is_resumed_once_and_unchanged(
    tmp_path: Path, engine: Engine, settings: Settings
) -> None:
    """Known failures C1, C3 and C6: two runs share a home and its results directory, and one of them is killed.

    A changed suite is refused by name, and of two resumes at once one runs.
    """
    suite = write_suite(tmp_path, TWO)
    with (
        boxeval(settings, str(suite), "--jobs", "1") as one,
        boxeval(settings, str(suite), "--jobs", "1") as two,
    ):
        kill_after_the_first_trial(one)
        _, said = two.communicate(timeout=120)
    assert two.returncode == 0, said
    found = {run: verified(settings, run) for run in settings.runs_dir.iterdir()}
    (whole,) = [run for run, seen in found.items() if seen.complete]
    (killed,) = [run for run, seen in found.items() if not seen.complete]
    assert whole.name not in killed.name
    assert found[killed].missing == ("slow[local]#1",)
    until = time.monotonic() + 30
    while not gone(engine, found[killed].plan.run_id):
        assert time.monotonic() < until, "the watchdog left something"
        time.sleep(0.1)
    refuses_a_changed_suite(settings, suite, killed)
    with (
        boxeval(settings, "--resume", killed.name) as one,
        boxeval(settings, "--resume", killed.name) as two,
    ):
        ends = [(process.communicate(timeout=120)[1], process.returncode) for process in (one, two)]
    assert sorted(code for _, code in ends) == [0, 2], ends
    (said,) = [said for said, code in ends if code == 2]
    assert "another boxeval is running this run" in said
    resumed = verified(settings, killed)
    assert resumed.complete
    assert [(t.task, t.attempt) for t in resumed.trials] == [("quick", 1), ("slow", 1)]
    assert gone(engine, resumed.plan.run_id)
    assert not engine.api.networks(filters={"label": RUN})


def refuses_a_changed_suite(settings: Settings, suite: Path, run: Path) -> None:
    ledger, right = (run / "ledger.jsonl").read_bytes(), suite.read_text()
    suite.write_text("# a comment\n" + right.replace('"sleep 2"', '"sleep 3"').replace("a: ", "b: ", 1))
    with boxeval(settings, "--resume", run.name) as refused:
        _, said = refused.communicate(timeout=60)
    assert refused.returncode == 2
    assert 'task slow[local].runner.command was "sleep 2", is "sleep 3"' in said
    assert "task quick[local].workspace.files.a was" in said
    assert (run / "ledger.jsonl").read_bytes() == ledger
    suite.write_text("# a comment\n" + right)


@pytest.mark.slow
@pytest.mark.contract("P18")
def test_many_more_jobs_than_cores_are_slow_and_not_wrong(
    tmp_path: Path, settings: Settings, engine: Engine
) -> None:
    """Known failure C5: what starts late is not charged to the candidate, whose deadline is shorter than the wait."""
    head = HEAD.replace("[{id: local}]", "[{id: local}], repeats: 24").replace("30000", "5000")
    suite = write_suite(tmp_path, TWO.partition("  - id: slow")[0], head)
    end, found = run(suite, settings, jobs=24)
    assert [str(trial.outcome.task) for trial in found.trials] == ["passed"] * 24
    assert (found.complete, end.left_behind) == (True, ())
    assert gone(engine, found.plan.run_id)
