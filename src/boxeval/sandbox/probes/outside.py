"""Checks that need boxes of their own: what one leaves for the next, how one ends, what it costs the controller."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from boxeval.sandbox.engine import engine_errors
from boxeval.sandbox.job import HOME, TMP, WORKSPACE, Job, shell
from boxeval.sandbox.keeper import GATEWAY_PORT
from boxeval.sandbox.probes.ground import COMMAND_MS, GATEWAY_SAYS, Ground
from boxeval.sandbox.probes.inside import PROBE
from boxeval.sandbox.probes.report import Verdict

GONE_S = 5.0
DEADLINE_MS = 1000
PORT = 45_201
FLOOD_BYTES = 64 << 20
FLOOD_MEMORY_KIB = 32 << 10
KEEPER_RIGHTS = frozenset({"CHOWN", "DAC_OVERRIDE", "FOWNER", "SYS_ADMIN"})
"""Said a second time here, so that a mistake in the slot shows."""

_PLACES = f"{WORKSPACE} {HOME} {TMP} /dev/shm /dev/mqueue"
_LEAVE = (
    f"for place in {_PLACES}; do echo left > $place/probe-was-here 2>/dev/null || :; done; setsid sleep 600 &"
)
_FIND = f"ls -A {_PLACES} | grep probe-was-here || :"
_SERVE = f"""
import socket
server = socket.create_server(("127.0.0.1", {PORT}))
client = socket.create_connection(("127.0.0.1", {PORT}))
peer, _ = server.accept()
peer.close()
print(client.recv(1) == b"")
"""
_BIND = f"""
import socket
with socket.socket() as server:
    server.bind(("127.0.0.1", {PORT}))
    server.listen()
print(True)
"""
_CALL = f"""
import socket
try:
    with socket.create_connection(("127.0.0.1", {GATEWAY_PORT}), 5) as peer:
        print(peer.recv(64))
except OSError as error:
    print(type(error).__name__)
"""
_STUBBORN = (
    "trap '' TERM HUP INT; (setsid sh -c 'while :; do sleep 0.05; done' &); while :; do sleep 0.05; done"
)


def residue(ground: Ground) -> Verdict:
    """Two boxes of one slot: the second finds no file of the first."""
    ground.say(_LEAVE)
    found = ground.say(_FIND).stdout.kept.decode("utf-8", "replace").split()
    return Verdict(
        not found, f"found {len(found)} files of the box before" if found else "nothing of the box before"
    )


def port_free(ground: Ground) -> Verdict:
    """A port on which the last box closed a connection can be bound by the next."""
    first = _python(ground, _SERVE)
    second = _python(ground, _BIND)
    return Verdict((first, second) == ("True", "True"), f"port {PORT}: {second or 'cannot be bound'}")


def gateway_closed(ground: Ground) -> Verdict:
    """The way to the model is there while its trial runs, and gone after."""
    ground.slot.reset()
    with ground.box("agent") as box:
        ground.slot.keeper.request("open_gateway", port=GATEWAY_PORT)
        box.start()
        job = Job(("python3", "-c", _CALL), ground.environment("agent"), timeout_ms=COMMAND_MS)
        during = box.run(job, last=False).stdout.kept.decode().strip()
        ground.slot.keeper.request("close_gateway")
        after = box.run(job, last=True).stdout.kept.decode().strip()
        box.settle()
    ok = (during, after) == (repr(GATEWAY_SAYS), "ConnectionRefusedError")
    return Verdict(ok, f"while open: {during}; after: {after}")


def daemon_gone(ground: Ground) -> Verdict:
    """A process that left its session and ignores signals is dead soon after the deadline, by its control group."""
    with ground.box("agent") as box:
        box.start()
        began = time.monotonic()
        end = box.run(Job(shell(_STUBBORN), ground.environment("agent"), timeout_ms=DEADLINE_MS), last=True)
        box.settle()
        took_s = time.monotonic() - began - DEADLINE_MS / 1000
    ok = end.timed_out and box.end.settled and took_s <= GONE_S
    return Verdict(ok, f"{box.end.survivors} alive {max(took_s, 0):.1f} s after the deadline")


def setuid_helper(ground: Ground) -> Verdict:
    """A set-user-id program of another user gives nothing to who starts it."""
    helper = f"{WORKSPACE}/helper"
    other = ground.policy.model_copy(update={"uid": ground.policy.uid % 65_533 + 1})
    with ground.box("agent") as box:
        box.start()
        make = Job(shell(f"cp {PROBE} {helper}; chmod 4755 {helper}"), ground.environment("agent"))
        made = box.run(make, last=True)
        box.settle()
        second = ground.box_after(box, other)
        try:
            second.start()
            end = second.run(Job((helper, "whoami"), {}, "/", timeout_ms=COMMAND_MS), last=True)
            second.settle()
        finally:
            second.remove()
    said = end.stdout.kept.decode().split()
    ok = made.exit_code == 0 and said == [str(other.uid)] * 2
    return Verdict(ok, f"real and effective user: {' and '.join(said) or end.spawn_error}")


def log_flood(ground: Ground) -> Verdict:
    """The controller's memory does not grow with what a box prints."""
    before = _memory_kib("VmRSS")
    # Writing 5 lets the kernel's record of the highest use start anew (proc_pid_clear_refs(5)).
    Path("/proc/self/clear_refs").write_text("5")
    end = ground.say(f"head -c {FLOOD_BYTES} /dev/zero")
    grown = max(_memory_kib("VmHWM") - before, 0)
    ok = grown < FLOOD_MEMORY_KIB and end.stdout.size_bytes == FLOOD_BYTES and end.stdout.truncated
    return Verdict(ok, f"{end.stdout.size_bytes >> 20} MiB printed, controller grew by {grown >> 10} MiB")


def keeper(ground: Ground) -> Verdict:
    """The one container with rights has only those that it needs, and no way out either."""
    with engine_errors("inspect the keeper"):
        inspected: dict[str, Any] = ground.engine.api.inspect_container(ground.slot.keeper_id)
    host = inspected["HostConfig"]
    rights = {name.removeprefix("CAP_") for name in host["CapAdd"] or ()}
    security = host["SecurityOpt"] or ()
    wrong = {
        f"rights {sorted(rights)}": rights != KEEPER_RIGHTS or host["CapDrop"] != ["ALL"],
        "privileged": host["Privileged"],
        f"network {host['NetworkMode']}": host["NetworkMode"] != "none",
        "a writable root": not host["ReadonlyRootfs"],
        "no filter of system calls": not any(option.startswith("seccomp={") for option in security),
        "new privileges": "no-new-privileges" not in security,
        "a namespace of the host": "host" in (host["PidMode"], host["IpcMode"], host["UTSMode"]),
        "no memory limit": not host["Memory"],
    }
    found = [name for name, is_so in wrong.items() if is_so]
    return Verdict(not found, ", ".join(found) or f"rights: {', '.join(sorted(rights))}; no network")


def host_file_unchanged(ground: Ground) -> Verdict:
    """The bait on the host is as it was laid."""
    bait = ground.bait
    for path in (bait.file, bait.protected / "a", bait.protected / "b"):
        if not path.is_file() or path.read_text() != bait.secret or path.stat().st_mode & 0o7777 != 0o666:
            return Verdict(False, f"{path.name} was changed")
    return Verdict(
        sorted(p.name for p in bait.protected.iterdir()) == ["a", "b"], "content, mode and number of files"
    )


OUTSIDE: dict[str, Callable[[Ground], Verdict]] = {
    "residue": residue,
    "port-free": port_free,
    "gateway-closed": gateway_closed,
    "daemon-gone": daemon_gone,
    "setuid-helper": setuid_helper,
    "log-flood": log_flood,
    "keeper": keeper,
    "host-file-unchanged": host_file_unchanged,
}


def _python(ground: Ground, script: str) -> str:
    return ground.say(f"python3 -c '{script}'").stdout.kept.decode("utf-8", "replace").strip()


def _memory_kib(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    return 0
