"""Every setting of a policy is what the engine and the kernel applied; weaken one and the box does not start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from docker.errors import APIError

from boxeval.errors import EngineError, IsolationError
from boxeval.sandbox import box as box_module
from boxeval.sandbox import settings
from boxeval.sandbox.box import Box
from boxeval.sandbox.images import ImageInfo
from boxeval.sandbox.job import HOME, Job, shell
from boxeval.sandbox.slot import Slot, remove_volume
from boxeval.sandbox.sweep import of_run
from boxeval.spec.policy import Policy
from engine_trees import put

PATH = {"PATH": "/usr/local/bin:/usr/bin:/bin"}


def test_a_box_starts_when_everything_is_as_asked(make_box: Callable[..., Box]) -> None:
    box = make_box()
    box.start()
    end = box.run(Job(shell("true"), PATH), last=True)
    assert end.exit_code == 0
    assert box.end.differences == ()


WEAKENED = {
    "CapAdd": ["NET_RAW"],
    "CapDrop": [],
    "SecurityOpt": ["no-new-privileges", "seccomp=unconfined"],
    "ReadonlyRootfs": False,
    "Privileged": True,
    "PidsLimit": 5000,
    "Memory": 256 * 1024 * 1024,
    "NanoCpus": 2_000_000_000,
    "ShmSize": 32 * 1024 * 1024,
    "IpcMode": "shareable",
    "PidMode": "host",
    "UTSMode": "host",
    "GroupAdd": ["0"],
    "OomScoreAdj": -500,
    "Ulimits": [],
    "Tmpfs": {HOME: "rw", "/tmp": "rw"},
    "Binds": ["/etc:/host-etc:ro"],
    "Devices": [{"PathOnHost": "/dev/null", "PathInContainer": "/dev/extra", "CgroupPermissions": "rwm"}],
}


@pytest.mark.parametrize("name", WEAKENED)
def test_a_weakened_setting_is_refused_by_name_before_anything_runs(
    name: str, make_box: Callable[..., Box], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = settings.host_config

    def weak(policy: Policy, mounts: settings.BoxMounts) -> dict[str, Any]:
        config = right(policy, mounts) | {name: WEAKENED[name]}
        if name == "Memory":
            config["MemorySwap"] = WEAKENED[name]
        if name == "UTSMode":
            config["NetworkMode"] = "none"
        return config

    monkeypatch.setattr(box_module, "host_config", weak)
    box = make_box()
    with pytest.raises(IsolationError, match=name):
        box.start()
    assert any(name in difference for difference in box.end.differences)
    inspected: dict[str, Any] = box._engine.api.inspect_container(box.id)
    assert inspected["State"]["Status"] == "created"


def test_a_writable_mount_of_the_tools_is_refused(
    make_box: Callable[..., Box], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = settings._mounts

    def weak(policy: Policy, mounts: settings.BoxMounts) -> list[dict[str, Any]]:
        return [mount | {"ReadOnly": False} for mount in right(policy, mounts)]

    with monkeypatch.context() as patch:
        patch.setattr(settings, "_mounts", weak)
        box = make_box()
    with pytest.raises(IsolationError, match="Mounts"):
        box.start()


ROOT_FACTS = {
    "Uid": "0 0 0 0",
    "CapEff": "00000000a80425fb",
    "NoNewPrivs": "0",
    "Seccomp": "0",
    "Groups": "0",
}


@pytest.mark.parametrize("name", ROOT_FACTS)
def test_the_kernel_has_the_last_word(name: str, policy: Policy) -> None:
    good = {
        "pid": "1",
        "Uid": "10001 10001 10001 10001",
        "Gid": "10001 10001 10001 10001",
        "Groups": "10001",
        **dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"), "0000000000000000"),
        "NoNewPrivs": "1",
        "Seccomp": "2",
    }
    assert settings.kernel_differences(policy, good) == ()
    (found,) = settings.kernel_differences(policy, good | {name: ROOT_FACTS[name]})
    assert found.startswith(name)


def test_a_box_that_the_engine_will_not_make_is_an_engine_error(
    make_box: Callable[..., Box], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> str:
        raise APIError("no such thing")

    monkeypatch.setattr(box_module, "create_container", broken)
    with pytest.raises(EngineError, match="create box"):
        make_box()


@pytest.mark.contract("P16")
def test_what_the_engine_makes_for_a_volume_that_a_sweep_took_is_found_again(
    slot: Slot, grader_image: ImageInfo
) -> None:
    """A controller that dies while its create is on the way: the watchdog is quicker with the volume."""
    yard = slot.yard
    workspace = slot.agent_workspace("late", "late", put(slot, []))
    remove_volume(yard.engine, workspace)
    box = slot.box("late", "agent", grader_image, workspace, 600)
    assert yard.engine.api.inspect_volume(workspace)["Driver"] == "local"  # the engine made one by itself
    try:
        found = {(one.kind, one.name) for one in of_run(yard.engine, yard.owner, yard.run_id)}
        assert ("volume", workspace) in found
    finally:
        box.remove()
        remove_volume(yard.engine, workspace)
