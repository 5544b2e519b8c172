"""Positive controls: weaken one setting, and the checks that stand for it must turn red.

The product has no way to weaken a box; these tests replace what it sends to the engine, and what it reads back.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from boxeval.agents.environment import base_environment
from boxeval.errors import EngineError
from boxeval.sandbox import box as box_module
from boxeval.sandbox import probes
from boxeval.sandbox import settings as settings_module
from boxeval.sandbox import slot as slot_module
from boxeval.sandbox.capture import Bounded
from boxeval.sandbox.engine import Engine
from boxeval.sandbox.job import HOME
from boxeval.sandbox.keeper import KeeperClient
from boxeval.sandbox.ownership import RUN, Owner
from boxeval.sandbox.probes import outside
from boxeval.sandbox.probes.ground import Ground, prepare
from boxeval.sandbox.probes.inside import INSIDE
from boxeval.sandbox.probes.live import LIVE
from boxeval.sandbox.probes.outside import OUTSIDE
from boxeval.sandbox.probes.report import ProbeResult, Verdict
from boxeval.sandbox.shim_frames import job_frame
from boxeval.sandbox.slot import Slot, remove_volume
from boxeval.sandbox.waits import Waits
from boxeval.spec.policy import Policy
from engine_runs import settings_in

UNCONFINED = "seccomp=unconfined"
ROOT = "0:0"
LONELY_UID = 23_456
"""A user that nobody else on the machine is: the shim kills what it can see of its user."""

SYS_RESOURCE = 24


def has_alg_sockets() -> bool:
    try:
        socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET).close()
    except OSError:
        return False
    return True


def may_give(capability: int) -> bool:
    (bounds,) = re.findall(r"CapBnd:\s*(\w+)", Path("/proc/self/status").read_text())
    return bool(int(bounds, 16) >> capability & 1)


HERE = {
    "af-alg": (has_alg_sockets(), "this kernel has no AF_ALG, so it is refused whatever the filter says"),
    "sysrq": (Path("/proc/sysrq-trigger").exists(), "this kernel has no sysrq"),
    **dict.fromkeys(
        ("oom-score", "ulimit-raise"),
        (may_give(SYS_RESOURCE), "this machine has no CAP_SYS_RESOURCE, so no container can have it"),
    ),
}
"""Checks whose control depends on the machine: whether it can turn red here, and if not, why."""
CANNOT = {name: reason for name, (can, reason) in HERE.items() if not can}
CAPABILITIES = [
    *(
        "SYS_ADMIN",
        "SYS_PTRACE",
        "SYS_CHROOT",
        "SYS_MODULE",
        "SYS_BOOT",
        "SYS_PACCT",
        "SYS_RAWIO",
        "SYS_TIME",
    ),
    *("SYSLOG", "NET_RAW", "NET_ADMIN", "DAC_READ_SEARCH", "MKNOD"),
    *(["SYS_RESOURCE"] if may_give(SYS_RESOURCE) else []),
]

OpenGround = Callable[[], Ground]


@pytest.fixture(scope="module")
def open_ground(
    engine: Engine, cache: Path, policy: Policy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OpenGround]:
    """Opens one more ground, with a keeper of its own; all are closed at the end of the module."""
    settings = settings_in(tmp_path_factory.mktemp("probes") / "home", cache)
    with ExitStack() as undo:

        def make() -> Ground:
            return undo.enter_context(prepare(engine, policy, settings, base_environment, lambda _: None))

        yield make


@pytest.fixture(scope="module")
def ground(open_ground: OpenGround) -> Ground:
    return open_ground()


@pytest.fixture
def weaken(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Change what boxes are created with. What is read back is not looked at, or no such box would start."""

    def change(user: str | None = None, **host: Any) -> None:
        right = box_module._config

        def weak(spec: box_module.BoxSpec) -> dict[str, Any]:
            config = right(spec)
            return config | {"User": user or config["User"], "HostConfig": config["HostConfig"] | host}

        monkeypatch.setattr(box_module, "_config", weak)
        monkeypatch.setattr(box_module, "engine_differences", lambda *_: ())
        monkeypatch.setattr(box_module, "kernel_differences", lambda *_: ())

    return change


def look(ground: Ground) -> dict[str, ProbeResult]:
    """Every check on one agent box, by name."""
    return {result.name: result for result in probes._look_at(ground, "agent")}


def red(results: dict[str, ProbeResult]) -> set[str]:
    return {name for name, result in results.items() if not result.ok}


def own_filter() -> list[str]:
    return [f"seccomp={settings_module.seccomp_profile()}"]


@dataclass(frozen=True)
class Weak:
    """One setting, and the checks that stand for it."""

    host: dict[str, Any]
    turns_red: set[str]
    user: str | None = None


BOX = {
    "another user": Weak({}, {"user", "group", "supplementary-groups"}, ROOT),
    "an added group": Weak({"GroupAdd": ["4242"]}, {"supplementary-groups"}),
    "no filter of system calls": Weak(
        {"SecurityOpt": ["no-new-privileges", UNCONFINED]},
        {
            *("seccomp", "user-namespaces", "keyrings", "perf", "userfaultfd", "io-uring", "personality"),
            *("foreign-abi", "clock", "device-nodes", "af-vsock", "socket-families", "af-alg"),
        },
    ),
    "capabilities and no filter": Weak(
        {"CapAdd": CAPABILITIES, "SecurityOpt": ["no-new-privileges", UNCONFINED]},
        {
            *(
                "capabilities",
                "oom-score",
                "ulimit-raise",
                "other-namespaces",
                "mount",
                "remount",
                "change-root",
            ),
            *(
                "bpf",
                "file-handles",
                "kernel-control",
                "kernel-log",
                "hostname",
                "raw-sockets",
                "first-process",
            ),
        },
        ROOT,
    ),
    "privileged": Weak(
        # A sysfs belongs to its network namespace, and the keeper's is read-only for all who join.
        {"Privileged": True, "ReadonlyRootfs": False, "NetworkMode": "none", "SecurityOpt": own_filter()},
        {"masked-paths", "kernel-settings", "core-pattern", "sysrq", "sysfs", "cgroup-files", "devices"},
    ),
    "nothing masked": Weak({"MaskedPaths": []}, {"masked-paths"}),
    "nothing read-only in proc": Weak({"ReadonlyPaths": []}, {"kernel-settings", "core-pattern", "sysrq"}),
    "new privileges": Weak({"SecurityOpt": own_filter()}, {"no-new-privileges"}),
    "a writable root": Weak({"ReadonlyRootfs": False}, {"root-file-system", "network-files"}),
    "the IPC namespace of the host": Weak({"IpcMode": "host"}, {"namespaces"}),
    "a device": Weak(
        {
            "Devices": [
                {"PathOnHost": "/dev/null", "PathInContainer": "/dev/extra", "CgroupPermissions": "rwm"}
            ]
        },
        {"devices"},
    ),
    "no private home": Weak({"Tmpfs": {"/tmp": "rw,size=4m,nr_inodes=2000"}}, {"home"}),
    "no limits": Weak(
        {
            "PidsLimit": -1,
            "Ulimits": [],
            "Memory": 0,
            "MemorySwap": 0,
            "NanoCpus": 0,
            "Tmpfs": {HOME: "rw,mode=0700,uid=10001,gid=10001", "/tmp": "rw"},
        },
        {
            *("open-files", "file-size", "core-size", "processes", "disk-bytes", "disk-inodes", "disk-full"),
            *("cgroup-limits", "memory-limit"),
        },
    ),
}
"""What is changed in one box."""


@pytest.mark.parametrize("name", BOX)
def test_a_weakened_box_is_red(name: str, ground: Ground, weaken: Callable[..., None]) -> None:
    weak = BOX[name]
    weaken(weak.user, **weak.host)
    missing = weak.turns_red - CANNOT.keys() - red(results := look(ground))
    assert not missing, {check: results[check].detail for check in missing}


def test_an_unweakened_box_is_green(ground: Ground) -> None:
    assert [result for result in look(ground).values() if not result.ok] == []


def network(
    ground: Ground, weaken: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> dict[str, ProbeResult]:
    """The host's network, on which somebody listens."""
    del monkeypatch
    weaken(NetworkMode="host")
    with socket.create_server(("127.0.0.1", 0)):
        return look(ground)


def processes(
    ground: Ground, weaken: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> dict[str, ProbeResult]:
    """The host's processes."""
    weaken(f"{LONELY_UID}:{LONELY_UID}", PidMode="host")
    monkeypatch.setattr(
        ground, "policy", ground.policy.model_copy(update={"uid": LONELY_UID, "gid": LONELY_UID})
    )
    monkeypatch.setattr(ground.slot, "policy", ground.policy)
    return look(ground)


def host_mounts(
    ground: Ground, weaken: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> dict[str, ProbeResult]:
    """The bait's directory, writable and in its own place, and something where an engine's socket would be."""
    here = str(ground.bait.directory)
    seen = [
        {"Type": "bind", "Source": source, "Target": target}
        for source, target in ((here, here), (f"{here}/protected/a", "/run/docker.sock"))
    ]
    extend_mounts(monkeypatch, lambda mounts: [*mounts, *seen])
    ground.bait.directory.chmod(0o755)
    weaken()
    try:
        results = look(ground)
        results["host-file-unchanged"] = ProbeResult(
            "host-file-unchanged", "host", *outside.host_file_unchanged(ground)
        )
    finally:
        ground.bait.directory.chmod(0o700)
        lay_again(ground)
    return results


def writable(
    ground: Ground, weaken: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> dict[str, ProbeResult]:
    """Mounts that should be read-only."""
    extend_mounts(monkeypatch, lambda mounts: [mount | {"ReadOnly": False} for mount in mounts])
    weaken()
    try:
        return look(ground)
    finally:
        lay_again(ground)


def environment(
    ground: Ground, weaken: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> dict[str, ProbeResult]:
    """The controller's environment."""
    del weaken
    monkeypatch.setattr(ground, "_environment", lambda path: {**os.environ, **base_environment(path)})
    return look(ground)


def labels(
    ground: Ground, weaken: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> dict[str, ProbeResult]:
    """A secret in a label."""
    del weaken
    right = Owner.labels
    monkeypatch.setattr(Owner, "labels", lambda *given: {**right(*given), "note": ground.bait.secret})
    return look(ground)


def overlay(
    ground: Ground, weaken: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> dict[str, ProbeResult]:
    """An overlay that follows redirects."""
    del weaken
    monkeypatch.setattr(slot_module, "OVERLAY", "redirect_dir=on,metacopy=on")
    return look(ground)


def settings(
    ground: Ground, weaken: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> dict[str, ProbeResult]:
    """An engine that does what it likes: here what is read back is looked at."""
    del weaken
    right = settings_module.host_config
    monkeypatch.setattr(
        box_module, "host_config", lambda policy, mounts: right(policy, mounts) | {"CapAdd": ["NET_RAW"]}
    )
    return look(ground)


Control = Callable[[Ground, Callable[..., None], pytest.MonkeyPatch], dict[str, ProbeResult]]
PROTECTED = {name for name in INSIDE if name.startswith("protected-")}
AROUND: dict[Control, set[str]] = {
    network: {
        *("interfaces", "routes", "metadata-address", "internet", "name-service", "abstract-sockets"),
        *("listeners", "namespaces"),
    },
    processes: {"foreign-processes", "namespaces"},
    host_mounts: {"host-file", "engine-sockets", "mount-table", "host-file-unchanged"},
    writable: {"tools", "mount-table", *PROTECTED},
    environment: {"environment", "environ-files"},
    labels: {"engine-record"},
    overlay: {"overlay-options"},
    settings: {"settings"},
}
"""What is changed around a box."""


@pytest.mark.parametrize("control", AROUND, ids=lambda control: control.__name__)
def test_weakened_surroundings_are_red(
    control: Control, ground: Ground, weaken: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    results = control(ground, weaken, monkeypatch)
    missing = AROUND[control] - red(results)
    assert not missing, {check: results[check].detail for check in missing}


def ground_mounts(ground: Ground) -> settings_module.BoxMounts:
    return settings_module.BoxMounts("workspace", ground.slot.yard.tools_volume, ground.slot.keeper_id)


def extend_mounts(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
) -> None:
    right = settings_module._mounts
    monkeypatch.setattr(settings_module, "_mounts", lambda policy, mounts: change(right(policy, mounts)))


def lay_again(ground: Ground) -> None:
    shutil.rmtree(ground.bait.protected)
    ground.bait.lay()


def verdict(ground: Ground, name: str) -> bool:
    return OUTSIDE[name](ground).ok


@pytest.mark.parametrize("name", OUTSIDE)
def test_checks_from_outside_are_green(name: str, ground: Ground) -> None:
    found = OUTSIDE[name](ground)
    assert found.ok, found.detail


def test_a_home_that_is_shared_is_residue(ground: Ground, weaken: Callable[..., None]) -> None:
    engine, name = ground.engine, f"boxeval-{ground.run_id}-shared"
    engine.api.create_volume(name, labels=ground.owner.labels(ground.run_id, "test", 600))
    try:
        shared = {"Type": "volume", "Source": name, "Target": HOME}
        host = settings_module.host_config(ground.policy, ground_mounts(ground))
        weaken(Tmpfs={"/tmp": host["Tmpfs"]["/tmp"]}, Binds=[f"{shared['Source']}:{shared['Target']}"])
        assert not verdict(ground, "residue")
    finally:
        remove_volume(engine, name)


def test_a_helper_with_rights(ground: Ground, weaken: Callable[..., None]) -> None:
    weaken(SecurityOpt=own_filter())
    assert not verdict(ground, "setuid-helper")


def test_a_gateway_that_stays_open(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    right = KeeperClient.request

    def deaf(self: KeeperClient, op: str, *given: Any, **named: Any) -> dict[str, Any]:
        return {} if op == "close_gateway" else right(self, op, *given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(KeeperClient, "request", deaf)
        assert not verdict(ground, "gateway-closed")


def test_a_deadline_that_nobody_keeps_inside(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    right = job_frame

    def patient(job: Any, last: bool) -> bytes:
        return right(job, last).replace(b"1000\0", b"60000\0", 1)

    monkeypatch.setattr(box_module, "job_frame", patient)
    monkeypatch.setattr(ground.engine, "waits", Waits(40))  # 5 s of grace
    assert not outside_or_error(ground, "daemon-gone")


def outside_or_error(ground: Ground, name: str) -> bool:
    """As `run_probes` counts it: a check that cannot be carried out is red."""
    try:
        return verdict(ground, name)
    except EngineError:
        return False


def test_output_that_is_kept(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bounded, "feed", keep_all)
    assert not verdict(ground, "log-flood")


def keep_all(self: Bounded, data: bytes) -> None:
    self._head += data
    self.size_bytes += len(data)


def test_a_keeper_with_more_rights_and_a_kernel_that_remembers_ports(
    open_ground: OpenGround, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = Slot._keeper_config

    def weak(self: Slot) -> dict[str, Any]:
        config = right(self)
        config["HostConfig"] |= {"CapAdd": [*slot_module.KEEPER_CAPABILITIES, "NET_ADMIN"], "Sysctls": {}}
        return config

    monkeypatch.setattr(Slot, "_keeper_config", weak)
    ground = open_ground()
    assert not verdict(ground, "keeper")
    assert not verdict(ground, "port-free")


def test_something_left_is_told(open_ground: OpenGround, monkeypatch: pytest.MonkeyPatch) -> None:
    """With every other check taken out."""
    monkeypatch.setattr(probes, "BOXES", ())
    monkeypatch.setattr(probes, "OUTSIDE", {"leaves": leave_a_volume})
    ground = prepare_like(open_ground)
    try:
        (found,) = probes.run_probes(ground).red
        assert found.name == "nothing-left"
    finally:
        for volume in ground.engine.api.volumes(filters={"label": f"{RUN}={ground.run_id}"})["Volumes"] or []:
            remove_volume(ground.engine, volume["Name"])


def prepare_like(open_ground: OpenGround) -> Ground:
    ground = open_ground()
    ground.__exit__(None, None, None)
    return ground


def leave_a_volume(ground: Ground) -> Verdict:
    name = f"boxeval-{ground.run_id}-left"
    ground.engine.api.create_volume(name, labels=ground.owner.labels(ground.run_id, "test", 600))
    return Verdict(True, "")


def test_every_check_has_a_control() -> None:
    controlled = {name for weak in BOX.values() for name in weak.turns_red}
    controlled |= {name for names in AROUND.values() for name in names}
    controlled |= {*OUTSIDE, "nothing-left"}
    every = {*INSIDE, *LIVE, *OUTSIDE, "settings", "memory-limit", "nothing-left"}
    assert controlled == every
    assert CANNOT.keys() <= every
    assert len(every) >= 35
