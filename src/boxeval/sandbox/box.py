"""One box: a container whose first process is the shim. Create, start, run commands, settle, remove."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docker.errors import APIError

from boxeval.errors import BoxError, BoxevalError, EngineError, IsolationError
from boxeval.sandbox.attach import Attachment
from boxeval.sandbox.capture import Bounded
from boxeval.sandbox.engine import Engine, engine_errors
from boxeval.sandbox.faults import FaultPlan, Injection
from boxeval.sandbox.job import Job
from boxeval.sandbox.settings import (
    SHIM,
    BoxMounts,
    engine_differences,
    host_config,
    kernel_differences,
)
from boxeval.sandbox.shim_frames import (
    CommandEnd,
    FaultMoment,
    LastReport,
    command_end,
    facts_of,
    fault_moment,
    job_frame,
    last_report,
)
from boxeval.spec.chaos import Injected
from boxeval.spec.policy import Policy

SIGKILLED = 128 + 9
CGROUPS = (
    "/sys/fs/cgroup/*/docker/{id}",
    "/sys/fs/cgroup/docker/{id}",
    "/sys/fs/cgroup/system.slice/docker-{id}.scope",
    "/sys/fs/cgroup/*/system.slice/docker-{id}.scope",
)


@dataclass(slots=True)
class BoxEnd:
    """How a box ended, by its shim, its cgroup and the engine together."""

    image_id: str
    commands: list[CommandEnd] = field(default_factory=list)
    settled: bool = False
    survivors: int = 0
    orphans: int = 0
    oom_kills: int = 0
    pids_denied: int = 0
    cpu_ms: int = 0
    max_rss_kib: int = 0
    engine_oom_flag: bool = False
    full: tuple[str, ...] = ()
    injected: list[Injected] = field(default_factory=list)
    differences: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class BoxSpec:
    """What a box is made of."""

    name: str
    labels: dict[str, str]
    image_id: str
    policy: Policy
    mounts: BoxMounts


class Box:
    """A created container. Use from one thread; `kill` may come from any."""

    def __init__(self, engine: Engine, spec: BoxSpec) -> None:
        self._engine, self.spec = engine, spec
        self.end = BoxEnd(spec.image_id)
        with engine_errors(f"create box {spec.name}"):
            self.id = create_container(engine, _config(spec), spec.name)
        self._reported = self._overdue = False
        self._faults = FaultPlan(engine, self.id)
        self._attachment: Attachment | None = None

    def start(self) -> None:
        """Attach, start, and compare what was applied with the policy before anything may run.

        Raises IsolationError if they differ, BoxError if the shim does not say hello.
        """
        with engine_errors(f"inspect box {self.spec.name}"):
            inspected: dict[str, Any] = self._engine.api.inspect_container(self.id)
            differences = engine_differences(self.spec.policy, self.spec.mounts, inspected)
        self._refuse(differences)
        self._attachment = Attachment.open(self._engine, self.id)
        with engine_errors(f"start box {self.spec.name}"):
            self._engine.api.start(self.id)
        kind, payload = self._frame(time.monotonic() + self._engine.waits.start_s)
        if kind != b"H":
            raise BoxError("the shim did not say hello")
        self._refuse(kernel_differences(self.spec.policy, facts_of(payload)))

    def _refuse(self, differences: tuple[str, ...]) -> None:
        if differences:
            self.end.differences = differences
            raise IsolationError("the engine did not apply the policy: " + "; ".join(differences))

    def plan(self, faults: Sequence[Injection]) -> None:
        """Tell the shim of faults to come; they are counted from the start of the first command."""
        self._faults.planned = {fault.number: fault for fault in faults}
        for fault in faults:
            self._connection.send(b"S", fault.frame())

    def run(self, job: Job, *, last: bool, aside: bool = False) -> CommandEnd:
        """Run one command to its end. After `last`, a failure or a timeout the box ends too.

        One that runs `aside` is not of the turn, and so is not among the commands of `end`.
        """
        cap = self.spec.policy.limits.output_kib * 1024
        out, err = Bounded(job.stdout_bytes or cap), Bounded(job.stderr_bytes or cap)
        began = time.monotonic()
        self._connection.send(b"J", job_frame(job, last))
        until = began + job.timeout_ms / 1000 + self._engine.waits.grace_s
        try:
            end = self._follow(out, err, until)
        except BoxError:
            if not self.killed_as_planned:
                raise
            wall_ms = int((time.monotonic() - began) * 1000)
            end = CommandEnd(None, signal.SIGKILL, False, None, wall_ms, out, err)
        if not aside:
            self.end.commands.append(end)
        if end.timed_out and end.stalled_ms > self._engine.waits.stall_ms:
            # A command that prints waits for the engine, and its deadline goes on.
            self.end.error = f"the engine took no output for {end.stalled_ms} ms before the deadline"
        return end

    def _follow(self, out: Bounded, err: Bounded, until: float) -> CommandEnd:
        while True:
            kind, payload = self._frame(until)
            if kind == b"S":
                self._strike(fault_moment(payload))
            elif kind == b"O":
                out.feed(payload)
            elif kind == b"E":
                err.feed(payload)
            elif kind == b"R":
                return command_end(payload, out, err)
            else:
                raise BoxError("the shim sent an unexpected frame")

    def _strike(self, moment: FaultMoment) -> None:
        """Bring about what is the engine's to do. Only then does the shim count on to the next fault."""
        self.end.injected.append(self._faults.inject(moment))
        if self._faults.is_the_engines(moment.number) and not self.killed_as_planned:
            with contextlib.suppress(BoxError):  # a box that has ended meanwhile says so itself
                self._connection.send(b"D")

    def settle(self) -> BoxEnd:
        """End the box if it has not ended, and make sure that nothing of it is alive.

        Shim gone (end of its stream), engine says exited, cgroup empty or gone. Sets `settled` only if all three hold.
        """
        self._finish(time.monotonic() + self._engine.waits.settle_s)
        self._await_exit()
        if not self._reported or self.end.oom_kills:
            with engine_errors(f"inspect box {self.spec.name}"):
                state = self._engine.api.inspect_container(self.id)["State"]
                # The flag is also up for a child; the shim itself was killed if it ended by a signal that is not ours.
                by_sigkill = state["ExitCode"] == SIGKILLED and not self._overdue
                self.end.engine_oom_flag = bool(state.get("OOMKilled")) and by_sigkill
        # Init's own exit waits for every process of its namespace, so what the shim still saw dying is gone by now.
        self.end.survivors = _cgroup_processes(self.id)
        self.end.settled = self.end.survivors == 0
        return self.end

    def _finish(self, until: float) -> None:
        """Ask the shim to end the box, and read its last report."""
        if self._attachment is None:
            return
        # A shim that was hung up ends its box by itself; one that is killed here could not be told from one that was
        # killed for want of memory.
        with contextlib.suppress(BoxError):
            # A shim whose box has ended already does not read this; its report is in the stream all the same.
            with contextlib.suppress(BoxError):
                self._connection.send(b"X")
            while True:
                kind, payload = self._frame(until)
                if kind == b"F":
                    self._take_report(last_report(payload))
                    return

    def _await_exit(self) -> None:
        """The engine's word that the box has exited; a box that does not by itself is killed."""
        settle_s = self._engine.waits.settle_s
        with contextlib.suppress(EngineError), engine_errors(f"wait for box {self.spec.name}"):
            self._engine.api.wait(self.id, timeout=settle_s)
            return
        self._overdue = True
        self.kill()
        with engine_errors(f"wait for box {self.spec.name}"):
            self._engine.api.wait(self.id, timeout=settle_s)

    def _take_report(self, report: LastReport) -> None:
        end = self.end
        end.orphans, end.survivors = report.orphans, report.survivors
        end.oom_kills, end.pids_denied = report.oom_kills, report.pids_denied
        end.cpu_ms, end.max_rss_kib = report.cpu_ms, report.max_rss_kib
        end.full = report.full
        self._reported = True

    @property
    def killed_as_planned(self) -> bool:
        """True once a fault of the task's own schedule has killed the box, so that its shim cannot report."""
        return self._faults.has_killed

    @property
    def reported(self) -> bool:
        """True once the shim has told how the box ended."""
        return self._reported

    @property
    def _connection(self) -> Attachment:
        if self._attachment is None:
            raise BoxError("the box was not started")
        return self._attachment

    def _frame(self, until: float) -> tuple[bytes, bytes]:
        try:
            frame = self._connection.receive(until)
        except TimeoutError:
            self._overdue = True
            self.kill()
            raise BoxError("the shim did not report in time") from None
        if frame is None:
            said = self._connection.stderr.decode("utf-8", "backslashreplace").strip()
            raise BoxError("the box ended without its shim's report" + (f": {said[-300:]}" if said else ""))
        return frame

    def kill(self) -> None:
        """SIGKILL, whatever the box is doing; a box that has ended is left as it is."""
        with contextlib.suppress(BoxevalError), engine_errors("kill a box"):
            self._engine.api.kill(self.id, "SIGKILL")

    def remove(self) -> None:
        """Remove the container, also while it runs. Safe to call twice."""
        if self._attachment is not None:
            self._attachment.close()
        remove_container(self._engine, self.id)


def create_container(engine: Engine, config: dict[str, Any], name: str) -> str:
    """Create from a raw configuration, past the SDK's own additions (proxies of the user's configuration);
    return the id.
    """
    answer: dict[str, Any] = engine.api.create_container_from_config(config, name)  # type: ignore[no-untyped-call]
    return str(answer["Id"])


def remove_container(engine: Engine, container: str) -> None:
    """Remove a container and its anonymous volumes, also while it runs; return when it is gone."""
    until = time.monotonic() + engine.waits.remove_s
    with engine_errors(f"remove container {container[:12]}"):
        while True:
            try:
                engine.api.remove_container(container, force=True, v=True)
            except APIError as error:
                if error.status_code == 404:
                    return
                # 409: it is ending just now, or somebody else is removing it; neither means that it is gone.
                if error.status_code != 409 or time.monotonic() > until:
                    raise
                time.sleep(0.05)


def _config(spec: BoxSpec) -> dict[str, Any]:
    return {
        "Image": spec.image_id,
        "Entrypoint": [SHIM],
        "Cmd": [],
        "User": f"{spec.policy.uid}:{spec.policy.gid}",
        "WorkingDir": "/",
        "Labels": spec.labels,
        "Tty": False,
        "OpenStdin": True,
        # The engine closes the shim's stdin when we hang up: a box never outlives its controller.
        "StdinOnce": True,
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "Healthcheck": {"Test": ["NONE"]},
        "HostConfig": host_config(spec.policy, spec.mounts),
    }


def cgroup_directories(container: str) -> Iterator[Path]:
    """The container's control groups where the host shows them: one with version 2, one for each controller with 1."""
    for pattern in CGROUPS:
        yield from Path("/").glob(pattern.format(id=container).lstrip("/"))


def _cgroup_processes(container: str) -> int:
    """Processes in the container's cgroup where the host shows it; an absent cgroup is an empty one."""
    most = 0
    for directory in cgroup_directories(container):
        try:
            most = max(most, len((directory / "cgroup.procs").read_text().split()))
        except OSError:
            continue
    return most
