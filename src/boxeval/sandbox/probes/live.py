"""Checks from outside on a box that is alive: its mounts, its control group, what the engine tells of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boxeval.sandbox.box import Box, cgroup_directories
from boxeval.sandbox.engine import engine_errors
from boxeval.sandbox.job import HOME, TMP, WORKSPACE, Job
from boxeval.sandbox.probes.ground import COMMAND_MS, Ground
from boxeval.sandbox.probes.inside import PROBE
from boxeval.sandbox.probes.report import Verdict
from boxeval.sandbox.settings import MIB, SHIM

FIXED_MOUNTS = frozenset(
    {
        *("/", "/proc", "/sys", "/sys/fs/cgroup", "/dev", "/dev/pts", "/dev/mqueue", "/dev/shm"),  # noqa: S108
        *("/etc/hosts", "/etc/hostname", "/etc/resolv.conf"),
        *(WORKSPACE, HOME, TMP, SHIM.rpartition("/")[0]),
    }
)
OVERLAY_OFF = {"metacopy": "off", "redirect_dir": "off", "index": "off"}
EATEN_MIB = 64


@dataclass(frozen=True, slots=True)
class _Mount:
    root: str
    point: str
    options: tuple[str, ...]
    tags: tuple[str, ...]
    kind: str
    super_options: tuple[str, ...]


def _mounts(box: Box) -> Iterator[_Mount]:
    """The box's own mount table (proc_pid_mountinfo(5)), read by the probe inside."""
    end = box.run(Job((PROBE, "show", "/proc/self/mountinfo"), {}, "/", timeout_ms=COMMAND_MS), last=False)
    for line in end.stdout.kept.decode("utf-8", "replace").splitlines():
        before, _, after = line.partition(" - ")
        _, _, _, root, point, options, *tags = before.split()
        kind, _, super_options = after.split(maxsplit=2)
        yield _Mount(
            root, point, tuple(options.split(",")), tuple(tags), kind, tuple(super_options.split(","))
        )


def mount_table(ground: Ground, box: Box) -> Verdict:
    """No mount that is not expected, none whose changes would reach the host, and what a policy shows read-only."""
    shown = {mount.target for mount in ground.policy.mounts}
    wanted = FIXED_MOUNTS | shown | set(box.spec.mounts.image_volumes)
    count = 0
    for mount in _mounts(box):
        count += 1
        covered = mount.point.startswith(("/proc/", "/sys/")) and (
            "ro" in mount.options or mount.root == "/null"
        )
        if not (covered or mount.point in wanted):
            return Verdict(False, f"{mount.point} ({mount.kind}, {mount.options[0]})")
        if mount.point in shown and "ro" not in mount.options:
            return Verdict(False, f"{mount.point} is writable")
        if any(tag.startswith("shared:") for tag in mount.tags):
            return Verdict(False, f"{mount.point} is shared with the host")
    return Verdict(count > 0, f"{count} mounts, all expected")


def overlay_options(ground: Ground, box: Box) -> Verdict:
    """The workspace is an overlay that follows no redirect and trusts no mark: what is hashed is what was written."""
    del ground
    for mount in _mounts(box):
        if mount.point == WORKSPACE:
            return _overlay_verdict(mount)
    return Verdict(False, f"nothing is mounted at {WORKSPACE}")


def _overlay_verdict(mount: _Mount) -> Verdict:
    if mount.kind != "overlay":
        return Verdict(False, f"a {mount.kind}")
    shown = dict(option.partition("=")[::2] for option in mount.super_options)
    for name, right in OVERLAY_OFF.items():
        value = shown.get(name) or _overlay_default(name)
        if value != right:
            return Verdict(False, f"{name}={value}")
    return Verdict(True, ",".join(f"{name}={value}" for name, value in OVERLAY_OFF.items()))


def _overlay_default(name: str) -> str:
    """The kernel does not show an option that has its default value."""
    try:
        text = Path(f"/sys/module/overlay/parameters/{name}").read_text().strip()
    except OSError:
        return "unknown"
    return {"N": "off", "Y": "on"}.get(text, text)


def cgroup_limits(ground: Ground, box: Box) -> Verdict:
    """The kernel's own numbers, as the host sees them."""
    limits = ground.policy.limits
    memory, swap = limits.memory_mib * MIB, limits.swap_mib * MIB
    wanted = {
        "memory.limit_in_bytes": f"{memory}",
        "memory.memsw.limit_in_bytes": f"{memory + swap}",
        "memory.max": f"{memory}",
        "memory.swap.max": f"{swap}",
        "pids.max": f"{limits.pids}",
        "cpu.cfs_quota_us": f"{round(limits.cpus * 100_000)}",
        "cpu.max": f"{round(limits.cpus * 100_000)} 100000",
    }
    seen: dict[str, str] = {}
    for directory in cgroup_directories(box.id):
        for name, right in wanted.items():
            file = directory / name
            if file.is_file():
                seen[name] = value = file.read_text().strip()
                if value != right:
                    return Verdict(False, f"{name} is {value}, not {right}")
    missing = {"memory", "pids", "cpu"} - {name.partition(".")[0] for name in seen}
    if missing:
        return Verdict(False, f"no limit seen on {', '.join(sorted(missing))}")
    return Verdict(True, ", ".join(sorted(seen)))


def engine_record(ground: Ground, box: Box) -> Verdict:
    """Nothing of the operator's environment is in what the engine tells everybody of a box or its keeper."""
    for container in (box.id, ground.slot.keeper_id):
        with engine_errors("inspect a box"):
            inspected: dict[str, Any] = ground.engine.api.inspect_container(container)
        if ground.bait.secret in json.dumps(inspected):
            return Verdict(False, f"container {inspected['Name']} shows what was planted")
    return Verdict(True, "labels, arguments and environment hold nothing that was planted")


LIVE: dict[str, Callable[[Ground, Box], Verdict]] = {
    "mount-table": mount_table,
    "overlay-options": overlay_options,
    "cgroup-limits": cgroup_limits,
    "engine-record": engine_record,
}
"""Need a started box, and leave it as it was."""


def memory_limit(ground: Ground, box: Box) -> Verdict:
    """Use more memory than there is, as the last thing in a box; the kill must be seen and told."""
    size = ground.policy.limits.memory_mib + ground.policy.limits.swap_mib + EATEN_MIB
    end = box.run(Job((PROBE, "eat", str(size)), {}, "/", timeout_ms=COMMAND_MS), last=True)
    box.settle()
    if end.signal != 9 or not box.end.oom_kills:
        return Verdict(
            False, f"{size} MiB could be used: exit {end.exit_code}, {box.end.oom_kills} kills counted"
        )
    return Verdict(True, f"killed below {size} MiB, {box.end.oom_kills} kill counted")
