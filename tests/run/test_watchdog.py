"""The watchdog's own rules, without an engine: when it acts, when it goes, what cannot end it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from boxeval.errors import EngineError
from boxeval.run import watchdog
from boxeval.run.watchdog import Order, Watchdog, take_over
from boxeval.sandbox import engine, ownership, sweep
from boxeval.sandbox.ownership import Owner

ORDER = Order("run-1", "home", "boot", "1.2.3", "/nonexistent/boxeval")


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_it_ends_with_its_controller_and_nothing_else_ends_it() -> None:
    dog = Watchdog(ORDER)
    until = time.monotonic() + 10
    # Signals count once it runs its own code.
    while "boxeval.run.watchdog" not in Path(f"/proc/{dog.pid}/cmdline").read_text() or not _ignores(dog.pid):
        assert time.monotonic() < until
        time.sleep(0.02)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        os.kill(dog.pid, number)
    assert os.getsid(dog.pid) != os.getsid(0)
    dog.dismiss()
    assert not alive(dog.pid)
    dog.dismiss()
    dog.leave()


def _ignores(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    mask = int(next(line for line in status.splitlines() if line.startswith("SigIgn")).split()[1], 16)
    return bool(mask & (1 << (signal.SIGTERM - 1)))


@pytest.mark.parametrize("said", [b"", b'{"run', b'{"run_id": "x"}\ndone\n'])
def test_without_a_whole_order_or_once_dismissed_it_does_nothing(said: bytes) -> None:
    script = (
        "import sys; from boxeval.run import watchdog; watchdog.take_over = lambda _: sys.exit(9); "
        "code = watchdog.main(); assert 'docker' not in sys.modules; sys.exit(code)"
    )
    process = subprocess.run([sys.executable, "-c", script], input=said, timeout=30, check=False)
    assert process.returncode == 0


def test_an_end_without_a_word_is_what_it_waits_for() -> None:
    script = "import sys; from boxeval.run import watchdog; watchdog.take_over = lambda o: print(o); watchdog.main()"
    order = b'{"run_id": "r", "home": "h", "boot": "b", "controller": "c", "gateway_dir": "g"}\n'
    process = subprocess.run(
        [sys.executable, "-c", script], input=order, capture_output=True, timeout=30, check=True
    )
    assert process.stdout.startswith(b"Order(run_id='r'")


class Engines:
    """Engines that fail twice, then find something twice, then nothing."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waited: list[float] = []
        self.asked: list[tuple[Owner, str]] = []
        self.lives = 3
        self.answers: list[Any] = [EngineError("gone"), EngineError("gone"), True, True]
        monkeypatch.setattr(time, "sleep", self.waited.append)
        monkeypatch.setattr(engine, "connect", lambda: self)
        monkeypatch.setattr(ownership, "is_alive", self.is_alive)
        monkeypatch.setattr(sweep, "abandon", self.abandon)

    def is_alive(self, controller: str) -> bool:
        assert controller == "1.2.3"
        self.lives -= 1
        return self.lives >= 0

    def abandon(self, _: object, owner: Owner, run_id: str) -> bool:
        assert self.lives < 0, "it acted while the controller lived"
        self.asked.append((owner, run_id))
        answer = self.answers.pop(0) if self.answers else False
        if isinstance(answer, Exception):
            raise answer
        return bool(answer)

    def close(self) -> None:
        pass


@pytest.mark.contract("P16")
def test_it_acts_once_the_controller_is_gone_and_looks_again_for_what_comes_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engines = Engines(monkeypatch)
    take_over(ORDER)
    assert set(engines.asked) == {(Owner("home", "boot", "1.2.3"), "run-1")}
    assert len(engines.asked) == 4 + len(watchdog.LOOK_AGAIN_S)
    assert engines.waited[-len(watchdog.LOOK_AGAIN_S) :] == list(watchdog.LOOK_AGAIN_S)


def test_an_engine_that_stays_away_does_not_keep_it_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    engines = Engines(monkeypatch)
    engines.answers = [EngineError("gone")] * 10_000
    clock = iter(range(0, 10_000_000, 100))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    take_over(ORDER)
    assert len(engines.asked) == 5  # at 100, 200, ... of 600 seconds


def test_it_takes_a_dead_gateway_s_directory_and_nothing_but_the_socket_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, more in (("empty", []), ("other", ["keep"])):
        directory = tmp_path / "sockets" / name
        directory.mkdir(parents=True)
        for file in ("gateway.sock", *more):
            (directory / file).write_text("")
        Engines(monkeypatch)
        take_over(Order("run-1", "home", "boot", "1.2.3", str(directory)))
    assert [path.name for path in (tmp_path / "sockets").rglob("*")] == ["other", "keep"]
