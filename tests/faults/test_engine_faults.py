"""The engine fails at one request of a run, or altogether: known failures B9 and C5, and what follows of P18.

Every run must end sealed, void or refused, in bounded time, and leave nothing without a word. `make faults` tries every
fault at every request; here are the ones that went wrong once, or would hurt most.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from boxeval.receipts.trust import Trust
from boxeval.receipts.verify import verify
from boxeval.run.controller import run_suite
from boxeval.run.events import RunRequest
from boxeval.sandbox.engine import Engine
from boxeval.sandbox.images import build_all
from boxeval.settings import Settings
from boxeval.spec.trial import Trial
from engine_proxy import Call, Fault
from engine_runs import Silent, forget, settings_in, write_suite
from faulty_runs import STALL_S, TIMEOUT_S, faulty_run, named, proxied, swept

pytestmark = pytest.mark.engine
CREATE, START, ATTACH = "POST /containers/create", "POST /containers/*/start", "POST /containers/*/attach"
RIGHT_AND_WRONG = ["right", "wrong"]


@pytest.fixture(scope="module", autouse=True)
def images(engine: Engine, cache: Path) -> None:  # noqa: ARG001
    """Nothing is built through the proxy, which reads answers whole."""
    build_all(engine, note=lambda _: None)


@pytest.fixture
def settings(tmp_path: Path, cache: Path) -> Iterator[Settings]:
    settings = settings_in(tmp_path / "bx", cache)
    yield settings
    forget(settings)


def second(name: str, fault: Fault) -> Callable[[Call], Fault | None]:
    """The second request of a name fails: the first is the keeper's, the second the candidate's."""
    seen = iter(range(1000))
    return lambda call: fault if call.name == name and next(seen) == 1 else None


@pytest.mark.parametrize(
    ("plan", "void", "said"),
    [
        (second(START, Fault.SLOW), [], None),
        (second(CREATE, Fault.LATE), ["right"], "create box"),
        (second(START, Fault.STALLED), ["right"], "start box"),
        (named(CREATE, Fault.TWICE), ["right"], "start the keeper"),
        (second(ATTACH, Fault.STALLED), ["right"], "the shim did not report in time"),
        (second(ATTACH, Fault.HALF), ["right"], "ended without its shim's report"),
        (named("POST /volumes/create", Fault.GARBLED), ["right"], "the engine's answer makes no sense"),
        (named("DELETE /containers/*", Fault.REFUSED, times=99), ["right", "wrong"], None),
    ],
    ids=[
        "70 s before a start are borne",
        "created when nobody waited any more",
        "a start that is never answered",
        "created twice",
        "a stream that goes silent",
        "a stream that is cut",
        "an answer of another form",
        "nothing can be removed",
    ],
)
def test_a_fault_ends_sealed_or_void_and_is_told(
    plan: Callable[[Call], Fault | None],
    void: list[str],
    said: str | None,
    tmp_path: Path,
    settings: Settings,
) -> None:
    ended = faulty_run(tmp_path / "suite", settings, plan)
    assert ended.wrong == ()
    assert ended.refused is None
    assert sorted(ended.kinds) == RIGHT_AND_WRONG
    spoiled = [task for task, told in sorted(ended.kinds.items()) if told.startswith("not_assessed")]
    if said is None:
        assert set(spoiled) <= set(void)
    else:
        assert spoiled == void
        assert said in ended.kinds["right"]


def test_output_that_the_engine_does_not_take_costs_no_candidate_its_deadline(
    tmp_path: Path, settings: Settings
) -> None:
    """Known failure C5: the candidate blocks in a write, its deadline passes, and all its output comes after that."""
    suite = write_suite(
        tmp_path,
        """
tasks:
  - id: prints
    workspace: {kind: inline, files: {a: "one\\n"}}
    runner: {kind: external-command, command: "head -c 4000000 /dev/zero", timeoutMs: 1500}
    verify: {commands: ["true"]}
""",
    )
    with proxied(second(ATTACH, Fault.SLOW), timeout_s=24, slow_s=2.5):
        end = run_suite(RunRequest(suite), Silent(), settings)
    (trial,) = verify(end.directory, Trust.local(settings)).trials
    assert trial.observations.agent is not None
    assert trial.observations.agent.commands[0].timed_out
    assert trial.outcome.failure_class == "command_error"
    assert "the engine took no output" in (trial.outcome.detail or "")


SLEEPERS = """
tasks:
  - id: spoiled
    workspace: {kind: inline, files: {a: "one\\n"}}
    runner: {kind: external-command, command: "sleep 200"}
    verify: {commands: ["true"]}
  - id: t1
    workspace: {kind: inline, files: {a: "one\\n"}}
    runner: {kind: external-command, command: "true"}
    verify: {commands: ["true"]}
  - id: t2
    workspace: {kind: inline, files: {a: "one\\n"}}
    runner: {kind: external-command, command: "true"}
    verify: {commands: ["true"]}
"""


class Acting(Silent):
    """Does something a moment after a task has begun to run."""

    def __init__(self, act: Callable[[], None]) -> None:
        super().__init__()
        self._act = act

    def started(self, trial: object, step: str) -> None:
        super().started(trial, step)  # type: ignore[arg-type]
        if step == "run" and self.steps[-1] == ("spoiled", "run"):
            threading.Timer(1, self._act).start()


def test_an_engine_that_is_gone_for_a_while_spoils_what_runs_and_no_more(
    tmp_path: Path, settings: Settings
) -> None:
    """Known failure B9: 20 s of 120, in proportion."""
    suite = write_suite(tmp_path, SLEEPERS)
    with proxied(lambda _: None) as proxy:

        def outage() -> None:
            proxy.down()
            threading.Timer(TIMEOUT_S * 20 / 120, proxy.up).start()

        end = run_suite(RunRequest(suite, jobs=1), Acting(outage), settings)
    found = {t.task: t for t in verify(end.directory, Trust.local(settings)).trials}
    assert [
        (found[name].outcome.task, found[name].outcome.failure_class) for name in ("spoiled", "t1", "t2")
    ] == [
        ("not_assessed", "command_error"),
        ("passed", None),
        ("passed", None),
    ]
    assert end.left_behind == ()
    assert swept(settings, end.run_id, ()) == []


def test_an_engine_that_never_comes_back_ends_the_run(tmp_path: Path, settings: Settings) -> None:
    suite = write_suite(tmp_path, SLEEPERS)
    began = time.monotonic()
    with proxied(lambda _: None) as proxy:
        watcher = Acting(proxy.down)
        end = run_suite(RunRequest(suite, jobs=1), watcher, settings)
    assert time.monotonic() - began < 5 * TIMEOUT_S
    run = verify(end.directory, Trust.local(settings))
    assert [trial.task for trial in run.trials] == ["spoiled"]
    assert run.missing == ("t1[local]#1", "t2[local]#1")
    assert not run.complete
    assert any("the engine does not answer" in note for note in watcher.notes)
    assert end.left_behind
    assert swept(settings, end.run_id, end.left_behind) == []


@pytest.mark.contract("P18")
def test_a_trial_whose_start_hangs_holds_no_other_up(tmp_path: Path, settings: Settings) -> None:
    """The start hangs until the others are done: if they waited for it, it would hang for its whole minute."""
    suite = write_suite(tmp_path, SLEEPERS.replace("sleep 200", "true"))
    # Both workers start a keeper; the third start is that of the first candidate.
    starts = iter(range(1000))
    with proxied(
        lambda call: Fault.STALLED if call.name == START and next(starts) == 2 else None, timeout_s=60
    ) as proxy:

        def release() -> None:
            proxy.down()
            proxy.up()

        watcher = Finishing(2, release)
        began = time.monotonic()
        end = run_suite(RunRequest(suite, jobs=2), watcher, settings)
        took_s = time.monotonic() - began
    trials = verify(end.directory, Trust.local(settings)).trials
    void = [trial.task for trial in trials if trial.outcome.failure_class == "command_error"]
    assert len(void) == 1
    assert watcher.trials[-1].task == void[0]
    assert sum(trial.outcome.task == "passed" for trial in trials) == 2
    assert took_s < 60


class Finishing(Silent):
    """Does something when so many trials have ended."""

    def __init__(self, count: int, act: Callable[[], None]) -> None:
        super().__init__()
        self._count, self._act = count, act

    def finished(self, trial: Trial) -> None:
        super().finished(trial)
        if len(self.trials) == self._count:
            self._act()


@pytest.mark.contract("V34")
def test_signals_end_a_run_whose_engine_hangs(tmp_path: Path, cache: Path, settings: Settings) -> None:
    hung = threading.Event()
    with proxied(lambda _: Fault.STALLED if hung.is_set() else None) as proxy:
        home = settings.data_dir.parent
        environ = {**os.environ, "BOXEVAL_HOME": str(home), "BOXEVAL_CACHE_DIR": str(cache)}
        command = [
            sys.executable,
            "-m",
            "boxeval",
            "run",
            str(write_suite(tmp_path, SLEEPERS)),
            "--out",
            str(home / "out"),
        ]
        with subprocess.Popen(
            command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            while sum(call.name == START for call in proxy.calls) < 2:
                time.sleep(0.05)
                assert process.poll() is None
            time.sleep(0.5)
            hung.set()
            process.send_signal(signal.SIGINT)
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=5 * TIMEOUT_S)
        assert process.returncode == 130
    assert STALL_S < TIMEOUT_S
    run = verify(home / "out", Trust.local(settings))
    assert not run.complete
    assert swept(settings, run.plan.run_id, ("told",)) == []
