"""One live run of an identity, told apart from a dead one by the kernel (contract G74)."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from boxeval.errors import UsageError
from boxeval.run.owner_lock import OWNERS, owned
from boxeval.sandbox.ownership import Owner
from plan_samples import plan, suite, task

PLAN = plan(suite(task("a")))
HOLD = """
import sys, time
sys.path[:0] = {path!r}
from pathlib import Path
from boxeval.run.owner_lock import owned
from boxeval.sandbox.ownership import Owner
from plan_samples import plan, suite, task
with owned(Path({root!r}), plan(suite(task("a"))), Owner.here(Path({root!r})), print):
    Path({root!r}, "r1").mkdir()
    Path({root!r}, "held").touch()
    time.sleep(60)
"""


def owner() -> Owner:
    return Owner.here(Path(os.environ["BOXEVAL_HOME"]))


def nothing(_note: str) -> None:
    raise AssertionError("nothing to tell")


def record(root: Path) -> dict[str, object]:
    [file] = (root / OWNERS).iterdir()
    return dict(json.loads(file.read_text() or "{}"))


@pytest.mark.contract("G74")
def test_an_equivalent_run_is_refused_while_one_is_alive(tmp_path: Path) -> None:
    with owned(tmp_path, PLAN, owner(), nothing):
        held = record(tmp_path)
        assert held["pid"] == os.getpid() and held["host"] == socket.gethostname()
        assert held["startTime"] == owner().controller.split(".")[1] and held["runId"] == "r1"
        with (
            pytest.raises(UsageError, match=f"an equivalent run is alive: run r1, pid {os.getpid()}"),
            owned(tmp_path, PLAN, owner(), nothing),
        ):
            pass
        with owned(tmp_path, plan(suite(task("b"))), owner(), nothing):
            pass  # another identity
        with owned(tmp_path / "elsewhere", PLAN, owner(), nothing):
            pass
    with owned(tmp_path, PLAN, owner(), nothing):
        pass  # it ended in peace, so there is nothing to mark
    assert not any(file.stat().st_size for file in (tmp_path / OWNERS).iterdir())


@pytest.mark.contract("G74")
def test_the_run_of_a_dead_owner_is_marked_and_kept(tmp_path: Path) -> None:
    code = HOLD.format(path=sys.path, root=str(tmp_path))
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)
    until = time.monotonic() + 30
    while not (tmp_path / "held").exists() and time.monotonic() < until:
        time.sleep(0.02)
    with pytest.raises(UsageError, match=f"pid {holder.pid}"), owned(tmp_path, PLAN, owner(), nothing):
        pass
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    (tmp_path / "r1/ledger.jsonl").write_text("kept")
    notes: list[str] = []
    with owned(tmp_path, PLAN, owner(), notes.append):
        assert notes == ["run r1 has lost its owner: it is marked as interrupted, and its files are kept"]
    marked = json.loads((tmp_path / "r1/interrupted.json").read_text())
    assert marked["owner"]["pid"] == holder.pid
    assert (tmp_path / "r1/ledger.jsonl").read_text() == "kept"
    assert (tmp_path / "r1/interrupted.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.contract("G74")
def test_an_owner_on_another_host_is_believed(tmp_path: Path) -> None:
    with owned(tmp_path, PLAN, owner(), nothing):
        pass
    [file] = (tmp_path / OWNERS).iterdir()
    file.write_text(json.dumps({"runId": "r9", "pid": 1, "host": "elsewhere.example"}))
    with (
        pytest.raises(UsageError, match=r"on another host: run r9, pid 1, host elsewhere.example; .*remove"),
        owned(tmp_path, PLAN, owner(), nothing),
    ):
        pass
    file.unlink()
    with owned(tmp_path, PLAN, owner(), nothing):
        pass


def test_a_record_that_a_crash_left_half_written_is_nothing(tmp_path: Path) -> None:
    with owned(tmp_path, PLAN, owner(), nothing):
        pass
    [file] = (tmp_path / OWNERS).iterdir()
    file.write_text('{"runId": "r')
    with owned(tmp_path, PLAN, owner(), nothing):
        pass
