"""A policy as the engine is told it, and the check that the engine and the kernel applied just that.

Everything that could weaken a box is written out in the request, also what is off, so that one comparison
for equality with what `inspect` says covers it. The kernel's own view comes from the shim's hello frame.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from boxeval.sandbox.job import HOME, TMP, WORKSPACE
from boxeval.settings import resource
from boxeval.spec.policy import Policy

MIB = 1024 * 1024
SHIM = "/.boxeval/shim"
MASKED = frozenset(
    {
        "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/sched_debug",
        "/proc/scsi", "/sys/firmware",
    }
)  # fmt: skip
"""What every engine since 20.10 hides; a newer one may hide more."""
NO_CORE = 1
"""Bytes. Less than any core, and unlike 0 it also keeps the kernel from piping one to a program of the host."""
READONLY = frozenset({"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"})


@cache
def seccomp_profile() -> str:
    """The filter of `policies/seccomp.json` on one line, as an engine is sent it and gives it back."""
    return json.dumps(json.loads((resource("policies") / "seccomp.json").read_bytes()), separators=(",", ":"))


@cache
def keeper_seccomp_profile() -> str:
    """The same for the keeper, which also makes whiteouts: character devices 0/0, and no other device."""
    profile = json.loads(seccomp_profile())
    is_character_device = {"index": 2, "value": 0o170000, "valueTwo": 0o020000, "op": "SCMP_CMP_MASKED_EQ"}
    is_whiteout = {"index": 3, "value": 0, "op": "SCMP_CMP_EQ"}
    profile["syscalls"].append(
        {"names": ["mknodat"], "action": "SCMP_ACT_ALLOW", "args": [is_character_device, is_whiteout]}
    )
    return json.dumps(profile, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class BoxMounts:
    """Volumes of one box by name, and the network namespace that it joins.

    `bridge`: it has the engine's default network instead. Only for a box that fetches a fixture.
    `image_volumes` are paths that the image declares. `private` names volumes by the path where they are mounted, for
    a home and a `/tmp` that several boxes share, one after another; without it each box has its own. `read_only` names
    volumes in the same way, which nobody in the box can write. `labels` are for what the engine makes itself: an empty
    volume in the stead of one that a sweep has taken.
    """

    workspace: str
    tools: str
    network_of: str
    image_volumes: tuple[str, ...] = ()
    bridge: bool = False
    private: Mapping[str, str] = field(default_factory=dict)
    read_only: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


def host_config(policy: Policy, mounts: BoxMounts) -> dict[str, Any]:
    """The engine's HostConfig for a box under `policy`."""
    limits = policy.limits
    core_bytes = max(limits.core_mib * MIB, NO_CORE)
    return {
        **({"Runtime": policy.runtime} if policy.runtime else {}),
        "NetworkMode": "bridge" if mounts.bridge else f"container:{mounts.network_of}",
        "Privileged": False,
        "ReadonlyRootfs": policy.read_only_root,
        "CapAdd": [],
        "CapDrop": ["ALL"],
        "SecurityOpt": _security(policy),
        "PidMode": "",
        "IpcMode": "private",
        "UTSMode": "",
        "UsernsMode": "",
        "GroupAdd": [],
        "Devices": [],
        "DeviceRequests": [],
        "DeviceCgroupRules": [],
        "Binds": [],
        "VolumesFrom": [],
        "ExtraHosts": [],
        "Links": [],
        "PublishAllPorts": False,
        "PortBindings": {},
        "Sysctls": {},
        "OomScoreAdj": 0,
        "OomKillDisable": False,
        "Init": False,
        "AutoRemove": False,
        "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0},
        "LogConfig": {"Type": "none", "Config": {}},
        "Memory": limits.memory_mib * MIB,
        "MemorySwap": (limits.memory_mib + limits.swap_mib) * MIB,
        "NanoCpus": round(limits.cpus * 1_000_000_000),
        "PidsLimit": limits.pids,
        "ShmSize": limits.shm_mib * MIB,
        "Ulimits": [
            {"Name": "core", "Soft": core_bytes, "Hard": core_bytes},
            {"Name": "fsize", "Soft": limits.file_size_mib * MIB, "Hard": limits.file_size_mib * MIB},
            {"Name": "nofile", "Soft": limits.open_files, "Hard": limits.open_files},
        ],
        "Tmpfs": _tmpfs(policy, mounts),
        "Mounts": _mounts(policy, mounts),
    }


def _security(policy: Policy) -> list[str]:
    own = [f"seccomp={seccomp_profile()}"] if policy.seccomp == "boxeval" else []
    return ["no-new-privileges", *own]


def _tmpfs(policy: Policy, mounts: BoxMounts) -> dict[str, str]:
    limits = policy.limits
    common = f"rw,nosuid,nodev,exec,nr_inodes={limits.workspace_inodes}"
    private = {
        HOME: f"{common},size={limits.home_mib}m,mode=0700,uid={policy.uid},gid={policy.gid}",
        TMP: f"{common},size={limits.tmp_mib}m,mode=1777",
    }
    # A VOLUME of the image would else become an anonymous volume without any cap; a mount of ours at its path wins.
    every = dict.fromkeys(mounts.image_volumes, f"{common},size={limits.tmp_mib}m,mode=1777") | private
    taken = {mount["Target"] for mount in _mounts(policy, mounts)}
    return {path: options for path, options in every.items() if path not in taken}


def _mounts(policy: Policy, mounts: BoxMounts) -> list[dict[str, Any]]:
    volumes = [
        (mounts.workspace, WORKSPACE, False),
        (mounts.tools, SHIM.rpartition("/")[0], True),
        *((volume, path, False) for path, volume in mounts.private.items()),
        *((volume, path, True) for path, volume in mounts.read_only.items()),
    ]
    fixed: list[dict[str, Any]] = [
        {
            "Type": "volume",
            "Source": source,
            "Target": target,
            "ReadOnly": read_only,
            "VolumeOptions": {"NoCopy": True, **({"Labels": dict(mounts.labels)} if mounts.labels else {})},
        }
        for source, target, read_only in volumes
    ]
    return fixed + [
        {
            "Type": "bind",
            "Source": mount.source,
            "Target": mount.target,
            "ReadOnly": True,
            "BindOptions": {"Propagation": "rprivate"},
        }
        for mount in policy.mounts
    ]


def engine_differences(policy: Policy, mounts: BoxMounts, inspected: dict[str, Any]) -> tuple[str, ...]:
    """Every setting in which `inspected` (a container's inspect answer) is not what was asked for."""
    found: list[str] = []

    def compare(name: str, wanted: Any, actual: Any) -> None:
        if _plain(wanted) != _plain(actual):
            found.append(f"{name}: asked for {_told(wanted)}, got {_told(actual)}")

    actual = inspected["HostConfig"]
    for name, wanted in host_config(policy, mounts).items():
        compare(name, wanted, actual.get(name))
    compare("User", f"{policy.uid}:{policy.gid}", inspected["Config"].get("User"))
    compare("Entrypoint", [SHIM], inspected["Config"].get("Entrypoint"))
    compare(
        "Mounts",
        sorted((m["Type"], m["Target"], not m["ReadOnly"]) for m in _mounts(policy, mounts)),
        sorted((m["Type"], m["Destination"], m["RW"]) for m in inspected.get("Mounts", ())),
    )
    for name, least in (("MaskedPaths", MASKED), ("ReadonlyPaths", READONLY)):
        if missing := least.difference(actual.get(name) or ()):
            found.append(f"{name}: {sorted(missing)} not covered")
    return tuple(found)


def kernel_differences(policy: Policy, hello: dict[str, str]) -> tuple[str, ...]:
    """Every fact of the shim's hello frame that is not what the policy promises."""
    uid, gid = str(policy.uid), str(policy.gid)
    wanted = {
        "pid": "1",
        "Uid": " ".join([uid] * 4),
        "Gid": " ".join([gid] * 4),
        **dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"), "0" * 16),
        "NoNewPrivs": "1",
        "Seccomp": "2",
    }
    found = [
        f"{name}: want {value}, the kernel says {hello.get(name)}"
        for name, value in wanted.items()
        if hello.get(name) != value
    ]
    if extra := set(hello.get("Groups", "?").split()) - {gid}:
        found.append(f"Groups: unwanted {sorted(extra)}")
    return tuple(found)


def _told(value: Any) -> str:
    text = repr(value).replace(seccomp_profile(), "boxeval")
    return text if len(text) <= 300 else f"{text[:299]}…"


def _plain(value: Any) -> Any:
    """Engines write "nothing" as null, [] or {}, leave out defaults inside lists, and order ulimits as they
    like.
    """
    if value is None or value == [] or value == {} or value == "":
        return None
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items() if _plain(v) is not None and v is not False}
    if isinstance(value, (list, tuple)):
        return sorted((_plain(v) for v in value), key=repr)
    return value
