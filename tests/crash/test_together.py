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


@pytest.mark.contract("P16", "P22", "P19")
def test_a_killed_run_disturbs_neither_the_next_one_nor_other_people(
    tmp_path: Path, engine: Engine, settings: Settings, grader_image: ImageInfo
) -> None:
    """Known failures C1 and C3: two runs share a home and its results directory, and one of them is killed."""
    api, name = engine.api, f"bystander-{os.getpid()}"
    container = api.create_container(grader_image.image_id, ["true"], name=f"boxeval-{name}")
    api.create_volume(f"boxeval-{name}")
    network = api.create_network(name)
    suite = write_suite(tmp_path, TWO)
    try:
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
        with boxeval(settings, "--resume", found[killed].plan.run_id) as again:
            _, said = again.communicate(timeout=120)
        assert again.returncode == 0, said
        assert verified(settings, killed).complete
        assert api.inspect_container(container["Id"])["State"]["Status"] == "created"
        assert api.inspect_volume(f"boxeval-{name}")["Name"] == f"boxeval-{name}"
        assert api.inspect_network(network["Id"])["Name"] == name
    finally:
        api.remove_container(container["Id"], force=True)
        api.remove_volume(f"boxeval-{name}")
        api.remove_network(network["Id"])


@pytest.mark.contract("P19")
def test_a_changed_suite_is_refused_by_name_and_of_two_resumes_one_runs(
    tmp_path: Path, engine: Engine, settings: Settings
) -> None:
    suite = write_suite(tmp_path, TWO)
    with boxeval(settings, str(suite), "--jobs", "1") as first:
        kill_after_the_first_trial(first)
    (directory,) = settings.runs_dir.iterdir()
    ledger = (directory / "ledger.jsonl").read_bytes()
    right = suite.read_text()
    suite.write_text("# a comment\n" + right.replace('"sleep 2"', '"sleep 3"').replace("a: ", "b: ", 1))
    with boxeval(settings, "--resume", directory.name) as refused:
        _, said = refused.communicate(timeout=60)
    assert refused.returncode == 2
    assert 'task slow[local].runner.command was "sleep 2", is "sleep 3"' in said
    assert "task quick[local].workspace.files.a was" in said
    assert (directory / "ledger.jsonl").read_bytes() == ledger
    suite.write_text("# a comment\n" + right)
    with (
        boxeval(settings, "--resume", directory.name) as one,
        boxeval(settings, "--resume", directory.name) as two,
    ):
        ends = [(process.communicate(timeout=120)[1], process.returncode) for process in (one, two)]
    assert sorted(code for _, code in ends) == [0, 2], ends
    (said,) = [said for said, code in ends if code == 2]
    assert "another boxeval is running this run" in said
    found = verified(settings, directory)
    assert found.complete
    assert [(t.task, t.attempt) for t in found.trials] == [("quick", 1), ("slow", 1)]
    assert gone(engine, found.plan.run_id)


def test_thirty_networks_of_others_are_no_matter(tmp_path: Path, engine: Engine, settings: Settings) -> None:
    """Known failure C6: boxes need no address pool."""
    api = engine.api
    made = []
    try:
        for number in range(30):
            pool = IPAMConfig(pool_configs=[IPAMPool(subnet=f"10.213.{number}.0/28")])
            made.append(api.create_network(f"others-{os.getpid()}-{number}", ipam=pool)["Id"])
        end, found = run(write_suite(tmp_path, TWO), settings)
        assert found.complete
        assert end.left_behind == ()
        assert not api.networks(filters={"label": RUN})
        assert all(api.inspect_network(network)["Id"] == network for network in made)
    finally:
        for network in made:
            api.remove_network(network)


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
