"""Policies: shipped and from files, and what they may never ask for (known failures C13, D14)."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from boxeval.errors import SuiteError
from boxeval.formats.mounts import host_mount_points, mount_faults, source_fault, target_fault
from boxeval.formats.policy import load_policy, memory_faults, policy_names
from boxeval.spec.policy import Limits, Policy, ReadOnlyMount


def refused(directory: Path, text: str) -> list[str]:
    (directory / "p.yaml").write_text(f"version: 1\nid: p\n{text}")
    with pytest.raises(SuiteError) as caught:
        load_policy("p.yaml", directory)
    assert all(problem.line for problem in caught.value.problems)
    return [f"{p.path}: {p.message}" if p.path else p.message for p in caught.value.problems]


def test_shipped_policies(tmp_path: Path) -> None:
    assert policy_names() == ["default", "strict"]
    default, strict = load_policy("default", tmp_path), load_policy("strict", tmp_path)
    assert default.limits == Limits()
    assert strict.hermetic
    assert strict.mounts == default.mounts == ()
    for name in (
        "memory_mib",
        "pids",
        "open_files",
        "workspace_mib",
        "workspace_inodes",
        "home_mib",
        "output_kib",
    ):
        assert getattr(strict.limits, name) < getattr(default.limits, name)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *(
            (f"{key}: true\n", f"{key}: `{key}` can never be asked for")
            for key in (
                "privileged",
                "capAdd",
                "cap_add",
                "devices",
                "pid",
                "ipc",
                "userns",
                "volumes",
                "binds",
            )
        ),
        ("capabilities: [SYS_ADMIN]\n", "capabilities: must be empty"),
        ("network: host\n", "network: must be one of `none`, `allowlist`, not `host`"),
        ("network: allowlist\n", "network: `network: allowlist` and `allow` need each other"),
        ("allow: [example.org]\n", "network: `network: allowlist` and `allow` need each other"),
        ("network: allowlist\nallow: ['*']\n", "allow[0]: `*` is no host, `*.` and a host, address or CIDR"),
        ("budget: {tokens: 0}\n", "budget.tokens: must be at least 1"),
        ("noNewPrivileges: false\n", "noNewPrivileges: must be `true`, not `false`"),
        ("readOnlyRoot: false\n", "readOnlyRoot: must be `true`, not `false`"),
        ("seccomp: unconfined\n", "seccomp: must be one of `boxeval`, `engine-default`, not `unconfined`"),
        ("uid: 0\n", "uid: must be at least 1, not `0`"),
        ("limit: {}\n", "unknown key `limit`; did you mean `limits`?"),
        ("limits: {pid: 5}\n", "limits: unknown key `pid`; did you mean `pids`?"),
        ("limits: {cpus: '1'}\n", "limits.cpus: must be a number, not `1`; write it without quotes"),
        ("limits: {cpus: 0}\n", "limits.cpus: must be more than 0, not `0`"),
        ("mounts: [{source: data, target: /d}]\n", "mounts[0].source: must be an absolute path, not `data`"),
        ("mounts: [{source: /usr/share, target: /d, mode: rw}]\n", "mounts[0]: unknown key `mode`"),
        (
            "limits: {memoryMib: 100, workspaceMib: 10, homeMib: 5, tmpMib: 3, shmMib: 20}\n",
            "limits: workspaceMib 10 + homeMib 5 + tmpMib 3 + shmMib 20 + headroom 64 = 102 MiB is more than"
            " memoryMib 100; raise it or lower the others",
        ),
    ],
)
def test_refused(tmp_path: Path, text: str, said: str) -> None:
    (found,) = refused(tmp_path, text)
    assert said in found


def test_memory_that_just_fits() -> None:
    limits = Limits(memory_mib=102, workspace_mib=10, home_mib=5, tmp_mib=3, shm_mib=20)
    assert memory_faults(Policy(version=1, id="p", limits=limits)) == []


@pytest.mark.parametrize("name", ["", "strct", "Default", "../default"])
def test_unknown_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(SuiteError):
        load_policy(name, tmp_path)


@pytest.mark.parametrize(
    "source",
    [
        "/",
        "/proc",
        "/proc/self",
        "/sys",
        "/dev",
        "/dev/null",
        "/etc",
        "/etc/passwd",
        "/var",
        "/run",
        "/root",
        "/home",
    ],
)
def test_system_sources_are_refused(source: str) -> None:
    if Path(source).exists():
        assert source_fault(source, ()) is not None


def test_sources_are_judged_where_their_links_lead(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc")
    assert "`/etc`" in str(source_fault(str(tmp_path / "link"), ()))
    assert "`/etc`" in str(source_fault(f"{tmp_path}/../../../../../../../etc", ()))


def test_the_users_home_a_missing_path_and_a_socket_are_refused(tmp_path: Path) -> None:
    assert "home directory" in str(source_fault(str(Path.home()), ()))
    assert "No such file" in str(source_fault(str(tmp_path / "missing"), ()))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        assert "neither a directory nor a regular file" in str(source_fault(str(tmp_path / "s"), ()))


def test_a_source_with_a_mount_inside_is_refused(tmp_path: Path) -> None:
    inner = str(tmp_path / "data" / "inner")
    (tmp_path / "data").mkdir()
    assert source_fault(str(tmp_path / "data"), (str(tmp_path), f"{tmp_path}/database")) is None
    assert f"another mount at `{inner[:60]}" in str(source_fault(str(tmp_path / "data"), (inner,)))


def test_mount_points_of_this_machine() -> None:
    assert {"/", "/proc"} <= set(host_mount_points())


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/proc/x",
        "/sys",
        "/dev/shm",
        "/workspace",
        "/workspace/x",
        "/home",
        "/home/agent/x",
        "/tmp",
        "/.boxeval",
        "/a/../b",
        "/a/",
        "//a",
        "/taken",
        "/taken/below",
    ],
)
def test_targets_that_are_refused(target: str) -> None:
    assert target_fault(target, ["/taken"]) is not None


def test_a_mount_that_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    mount = ReadOnlyMount(source=str(tmp_path / "data"), target="/opt/data")
    assert list(mount_faults([mount])) == []
    assert [path for path, _ in mount_faults([mount, mount])] == [("mounts", 1, "target")]
