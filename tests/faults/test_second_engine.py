"""A second `dockerd` is killed in mid-run and started again, and its disk fills up."""

from __future__ import annotations

import gc
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from second_engine import SecondEngine, second_engine

from boxeval.receipts.trust import Trust
from boxeval.receipts.verify import verify
from boxeval.run.controller import run_suite
from boxeval.run.events import RunRequest
from boxeval.sandbox.engine import Engine
from boxeval.settings import Settings
from boxeval.spec.trial import Trial
from engine_runs import Silent, forget, settings_in, write_suite
from faulty_runs import swept, told

MISSING = [tool for tool in ("dockerd", "unshare", "nsenter", "ip") if not shutil.which(tool)]
pytestmark = [
    pytest.mark.engine,
    # The SDK leaves its socket to the garbage collector when nobody listens.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.skipif(os.geteuid() != 0, reason="a second dockerd needs root"),
    pytest.mark.skipif(bool(MISSING), reason=f"a second dockerd needs {', '.join(MISSING)}"),
]
DATA_MIB = 1024


@pytest.fixture(scope="module")
def second(engine: Engine, cache: Path) -> Iterator[SecondEngine]:  # noqa: ARG001
    with second_engine(DATA_MIB) as second:
        second.load(engine)
        yield second


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """What is to be ignored comes up here, and not in some other test."""
    yield
    gc.collect()


@pytest.fixture
def settings(
    second: SecondEngine, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Settings]:
    monkeypatch.setenv("DOCKER_HOST", second.host)
    monkeypatch.setenv("BOXEVAL_ENGINE_TIMEOUT_S", "30")
    settings = settings_in(tmp_path / "bx", cache)
    yield settings
    forget(settings)


TASK = """
  - id: {}
    workspace: {{kind: inline, files: {{a: "one\\n"}}}}
    runner: {{kind: external-command, command: "{}"}}
    verify: {{commands: ["grep -qx two a"]}}
"""
WRITES = "echo two > a"


def outcomes(end_directory: Path, settings: Settings) -> dict[str, Trial]:
    return {trial.task: trial for trial in verify(end_directory, Trust.local(settings)).trials}


class Killing(Silent):
    """Kills the engine a second after `spoiled` has begun to run, and starts it again."""

    def __init__(self, second: SecondEngine) -> None:
        super().__init__()
        self._second = second

    def started(self, trial: object, step: str) -> None:
        super().started(trial, step)  # type: ignore[arg-type]
        if self.steps[-1] == ("spoiled", "run"):
            threading.Timer(1, self._restart).start()

    def _restart(self) -> None:
        self._second.kill()
        self._second.start()


def test_an_engine_that_is_killed_and_started_again_spoils_one_trial(
    second: SecondEngine, tmp_path: Path, settings: Settings
) -> None:
    """Known failure B9, with a real daemon: its containers run on until the new one ends them."""
    suite = write_suite(
        tmp_path, "\ntasks:" + TASK.format("spoiled", "sleep 200") + TASK.format("right", WRITES)
    )
    end = run_suite(RunRequest(suite, jobs=1), Killing(second), settings)
    found = outcomes(end.directory, settings)
    assert found["spoiled"].outcome.failure_class == "command_error"
    assert found["right"].outcome.task == "passed"
    assert swept(settings, end.run_id, end.left_behind) == []


@contextmanager
def filled(second: SecondEngine) -> Iterator[None]:
    """The engine's data are full."""
    file = second.data / "filler"
    with file.open("wb") as out:
        os.posix_fallocate(out.fileno(), 0, shutil.disk_usage(second.data).free)
    try:
        yield
    finally:
        file.unlink()


def test_an_engine_whose_disk_is_full_is_told_and_its_trials_are_void(
    second: SecondEngine, tmp_path: Path, settings: Settings
) -> None:
    suite = write_suite(
        tmp_path, "\ntasks:" + TASK.format("right", WRITES) + TASK.format("wrong", "echo three > a")
    )
    with filled(second):
        end = run_suite(RunRequest(suite, jobs=1), Silent(), settings)
    found = outcomes(end.directory, settings)
    assert [trial.outcome.weight for trial in found.values()] == ["void", "void"]
    assert all("no space left on device" in told(trial) for trial in found.values())
    assert swept(settings, end.run_id, end.left_behind) == []
    again = run_suite(RunRequest(suite, jobs=1, out=tmp_path / "again"), Silent(), settings)
    assert {name: t.outcome.task for name, t in outcomes(again.directory, settings).items()} == {
        "right": "passed",
        "wrong": "failed",
    }
