"""Whose an object is, and whether its controller lives: by start time, boot and pid namespace, not by pid alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from boxeval.sandbox.ownership import CONTROLLER, DEADLINE, OWNER, Owner, is_alive, since_boot_s


@pytest.fixture
def owner(tmp_path: Path) -> Owner:
    return Owner.here(tmp_path)


def is_orphan(mine: Owner, **changed: str) -> bool:
    labels = mine.labels("run-1", "agent", 60)
    names = {"owner": OWNER, "controller": CONTROLLER, "deadline": DEADLINE}
    return mine.is_orphan(labels | {names[name]: value for name, value in changed.items()}, since_boot_s())


@pytest.mark.contract("P16")
def test_what_a_live_controller_made_is_no_orphan(owner: Owner) -> None:
    assert is_alive(owner.controller)
    assert not is_orphan(owner)
    assert is_orphan(owner, deadline=str(int(since_boot_s()) - 1))


def test_another_home_s_is_never_one_and_another_boot_s_always(owner: Owner) -> None:
    assert not is_orphan(owner, owner=f"other.{owner.boot}", deadline="1", controller="")
    assert is_orphan(owner, owner=f"{owner.home}.another")
    assert not owner.is_orphan({OWNER: owner.label}, since_boot_s())  # no object of a run


def test_a_recycled_pid_is_no_live_controller(owner: Owner) -> None:
    pid, started, namespace = owner.controller.split(".")
    assert not is_alive(f"{pid}.{int(started) + 1}.{namespace}")
    assert is_orphan(owner, controller=f"{pid}.{int(started) + 1}.{namespace}")


def test_a_controller_in_a_namespace_that_we_cannot_look_into_may_live(owner: Owner) -> None:
    assert is_alive("4194000.1.1")
    assert not is_orphan(owner, controller="4194000.1.1")
    assert is_orphan(owner, controller="4194000.1.1", deadline=str(int(since_boot_s()) - 1))


@pytest.mark.parametrize("label", ["", "x", "1", "1.2", "..", "-1.2.3", "1.2.3.4", "\u0663.1.1"])
def test_a_label_that_is_none_is_of_no_live_controller(label: str) -> None:
    assert not is_alive(label)


def test_a_process_that_its_parent_has_not_reaped_is_dead(owner: Owner) -> None:
    namespace = owner.controller.split(".")[2]
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        started = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19]
        label = f"{process.pid}.{started}.{namespace}"
        assert is_alive(label)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert Path(f"/proc/{process.pid}").exists()
        assert not is_alive(label)
    assert not is_alive(label)
