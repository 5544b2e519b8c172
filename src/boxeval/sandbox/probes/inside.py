"""Checks from inside a box, by the probe (images/probe/probe.c): it is told what to expect and answers by line."""

from __future__ import annotations

import json
from pathlib import Path

from boxeval.errors import BoxError
from boxeval.sandbox.box import Box
from boxeval.sandbox.job import HOME, TMP, WORKSPACE, Job
from boxeval.sandbox.probes.ground import PROTECTED, BoxRole, Ground
from boxeval.sandbox.probes.report import DETAIL_CHARACTERS, ProbeResult
from boxeval.sandbox.settings import MIB, NO_CORE

PROBE = "/.boxeval/probe"
PROBE_MS = 120_000
VARIABLES = ("BOXEVAL_WORKSPACE", "CI", "HOME", "LANG", "PATH", "TERM", "TMPDIR", "TZ", "USER")
"""All that a process sees to which its suite gives nothing. Said a second time here, so that a mistake shows."""

INSIDE = (
    *("user", "group", "supplementary-groups", "capabilities", "no-new-privileges", "seccomp", "oom-score"),
    *(
        "ulimit-raise",
        "user-namespaces",
        "other-namespaces",
        "mount",
        "remount",
        "change-root",
        "keyrings",
        "bpf",
    ),
    *("perf", "userfaultfd", "io-uring", "file-handles", "personality", "foreign-abi", "kernel-control"),
    *(
        "kernel-log",
        "clock",
        "hostname",
        "device-nodes",
        "af-alg",
        "af-vsock",
        "raw-sockets",
        "socket-families",
    ),
    *(
        "interfaces",
        "routes",
        "metadata-address",
        "internet",
        "name-service",
        "abstract-sockets",
        "listeners",
    ),
    *("foreign-processes", "first-process", "namespaces", "environment", "environ-files", "home"),
    *(
        "root-file-system",
        "network-files",
        "tools",
        "protected-write",
        "protected-truncate",
        "protected-chmod",
    ),
    *(
        "protected-utime",
        "protected-link",
        "protected-rename",
        "protected-unlink",
        "host-file",
        "engine-sockets",
    ),
    *("masked-paths", "kernel-settings", "core-pattern", "sysrq", "sysfs", "cgroup-files", "devices"),
    *("open-files", "file-size", "core-size", "processes", "disk-bytes", "disk-inodes", "disk-full"),
)
"""The checks of the probe; one that does not answer is red."""


def look_inside(ground: Ground, box: Box, role: BoxRole) -> list[ProbeResult]:
    """Run the probe in a started box."""
    env = ground.environment(role)
    try:
        end = box.run(Job((PROBE, *expectations(ground)), env, "/", timeout_ms=PROBE_MS), last=False)
    except BoxError as error:
        return [ProbeResult(name, role, False, f"no answer: {error}") for name in INSIDE]
    return read_answers(end.stdout.kept, role)


def expectations(ground: Ground) -> tuple[str, ...]:
    """The probe's arguments: what the policy promises, and the bait."""
    policy, limits, bait = ground.policy, ground.policy.limits, ground.bait
    inodes = limits.workspace_inodes
    disks = (
        (WORKSPACE, limits.workspace_mib, inodes),
        (HOME, limits.home_mib, inodes),
        (TMP, limits.tmp_mib, inodes),
        ("/dev/shm", limits.shm_mib, 0),  # noqa: S108  its inodes are memory, which is limited
    )
    told = {
        "uid": policy.uid,
        "gid": policy.gid,
        "environment": ",".join(VARIABLES),
        "canary": bait.variable,
        "abstract": bait.abstract,
        "host": bait.file,
        "protected": PROTECTED,
        "namespaces": ",".join(str(path.readlink()) for path in Path("/proc/self/ns").iterdir()),
        "openFiles": limits.open_files,
        "fileBytes": limits.file_size_mib * MIB,
        "coreBytes": max(limits.core_mib * MIB, NO_CORE),
        "processes": limits.pids,
        "homeBytes": limits.home_mib * MIB,
        "tmpfs": ",".join(f"{path}:{mib * MIB}:{files}" for path, mib, files in disks),
    }
    return tuple(f"{name}={value}" for name, value in told.items())


def read_answers(output: bytes, role: BoxRole) -> list[ProbeResult]:
    """One result for each of INSIDE, in that order, whatever the output holds."""
    answers: dict[str, tuple[bool, str]] = {}
    for line in output.splitlines():
        try:
            answer = json.loads(line)
            answers[answer["name"]] = answer["ok"] is True, str(answer["detail"])[:DETAIL_CHARACTERS]
        except (ValueError, TypeError, KeyError):
            continue
    return [ProbeResult(name, role, *answers.get(name, (False, "no answer"))) for name in INSIDE]
