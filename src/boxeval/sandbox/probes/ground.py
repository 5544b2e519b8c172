"""Where probes run: a slot of its own, bait on the host, and boxes under the policy that is looked at."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal

from boxeval.formats.fixtures import inline_fixture
from boxeval.sandbox.box import Box, BoxSpec
from boxeval.sandbox.engine import Engine
from boxeval.sandbox.images import BASE, GRADER, KEEPER, ImageInfo, ensure
from boxeval.sandbox.job import Job, shell
from boxeval.sandbox.ownership import Owner
from boxeval.sandbox.settings import BoxMounts
from boxeval.sandbox.shim_frames import CommandEnd
from boxeval.sandbox.slot import Slot, Yard, remove_volume
from boxeval.settings import Settings, socket_parent
from boxeval.spec.policy import Policy, ReadOnlyMount

BoxRole = Literal["agent", "grader"]
BOXES: tuple[BoxRole, ...] = ("agent", "grader")
PROTECTED = "/probe-protected"
LIFETIME_S = 900
COMMAND_MS = 30_000
GATEWAY_SAYS = b"gateway"

Environment = Callable[[str], dict[str, str]]
"""From an image's PATH to all that a process in a box of it sees."""


@dataclass(frozen=True, slots=True)
class Bait:
    """Things of the host that no box may see or change; `secret` is also the value of the variable `variable`."""

    directory: Path
    secret: str = field(default_factory=lambda: secrets.token_hex(16))

    @property
    def variable(self) -> str:
        """A variable of the controller's own environment."""
        return f"PROBE_TOKEN_{self.secret[:12]}"

    @property
    def abstract(self) -> str:
        """An abstract socket on which the host listens."""
        return f"boxeval-probe-{self.secret[:12]}"

    @property
    def file(self) -> Path:
        """A file that everybody on the host could write."""
        return self.directory / "canary"

    @property
    def protected(self) -> Path:
        """A directory that everybody on the host could write; boxes see it mounted read-only."""
        return self.directory / "protected"

    def lay(self) -> None:
        """Make the files."""
        self.protected.mkdir()
        self.protected.chmod(0o777)
        for path in (self.file, self.protected / "a", self.protected / "b"):
            path.write_text(self.secret)
            path.chmod(0o666)


def prepare(
    engine: Engine, policy: Policy, settings: Settings, environment: Environment, note: Callable[[str], None]
) -> Ground:
    """Have the images and refuse, with an EngineError, an engine on which boxes cannot run at all."""
    engine.require_overlay_volumes()
    engine.require_runtime(policy.runtime)
    keeper, base, grader = (ensure(engine, name, note=note) for name in (KEEPER, BASE, GRADER))
    return Ground(engine, policy, settings, environment, keeper, {"agent": base, "grader": grader})


class Ground:
    """A context manager; use from one thread. Inside it `slot` is open and the bait is laid."""

    def __init__(
        self,
        engine: Engine,
        policy: Policy,
        settings: Settings,
        environment: Environment,
        keeper: ImageInfo,
        images: dict[BoxRole, ImageInfo],
    ) -> None:
        self.engine, self.images = engine, images
        self.run_id = f"probe-{secrets.token_hex(4)}"
        self.owner = Owner.here(settings.data_dir)
        self._asked, self._environment, self._keeper, self._settings = policy, environment, keeper, settings
        self._undo = ExitStack()
        self._boxes = 0
        self.bait: Bait
        self.policy = policy
        self.slot: Slot

    def __enter__(self) -> Ground:
        with ExitStack() as undo:
            self._settings.data_dir.mkdir(parents=True, exist_ok=True)
            place = undo.enter_context(
                tempfile.TemporaryDirectory(prefix="probe-", dir=self._settings.data_dir)
            )
            self.bait = Bait(Path(place))
            self.bait.lay()
            shown = ReadOnlyMount(source=str(self.bait.protected), target=PROTECTED)
            self.policy = self._asked.model_copy(update={"mounts": (*self._asked.mounts, shown)})
            undo.enter_context(_planted(self.bait))
            short = tempfile.TemporaryDirectory(prefix="boxeval-", dir=socket_parent())
            gateway = Path(undo.enter_context(short))
            undo.enter_context(_listening("\0" + self.bait.abstract))
            undo.enter_context(_listening(str(gateway / "gateway.sock")))
            (gateway / "gateway.sock").chmod(0o666)
            yard = Yard(
                engine=self.engine,
                owner=self.owner,
                run_id=self.run_id,
                keeper_image=self._keeper,
                cache_dir=self._settings.cache_dir,
                gateway_dir=gateway,
                lifetime_s=LIFETIME_S,
            )
            self.slot = Slot.open(yard, "slot", self.policy)
            undo.callback(self.slot.close)
            self._undo = undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._undo.close()

    def environment(self, role: BoxRole) -> dict[str, str]:
        """What processes in such a box see."""
        return self._environment(self.images[role].path_env)

    @contextmanager
    def box(self, role: BoxRole) -> Iterator[Box]:
        """A box in the emptied slot, over an empty fixture; not started. Removed with its workspace."""
        self.slot.reset()
        key = self._empty_fixture()
        name = self._next(role)
        if role == "agent":
            workspace = self.slot.agent_workspace(name, "agent", key)
        else:
            self.slot.keeper.request("layer", name="agent.below", uid=self.policy.uid, gid=self.policy.gid)
            workspace = self.slot.grader_workspace(name, "grader", ["agent.below"], key)
        with ExitStack() as undo:
            undo.callback(remove_volume, self.engine, workspace)
            box = self.slot.box(name, role, self.images[role], workspace, LIFETIME_S)
            undo.callback(box.remove)
            yield box

    def box_after(self, box: Box, policy: Policy) -> Box:
        """A box over the workspace of a settled one, under another policy. The caller removes it."""
        yard, before = self.slot.yard, box.spec
        mounts = BoxMounts(before.mounts.workspace, yard.tools_volume, self.slot.keeper_id)
        name = self._next("agent")
        spec = BoxSpec(
            name=f"boxeval-{self.run_id}-{name}",
            labels=before.labels,
            image_id=before.image_id,
            policy=policy,
            mounts=mounts,
        )
        return Box(self.engine, spec)

    def say(self, script: str, *, timeout_ms: int = COMMAND_MS) -> CommandEnd:
        """Run a shell script in an agent box of its own and return how it ended; the box is settled and gone."""
        with self.box("agent") as box:
            box.start()
            end = box.run(Job(shell(script), self.environment("agent"), timeout_ms=timeout_ms), last=True)
            box.settle()
        return end

    def _next(self, role: str) -> str:
        self._boxes += 1
        return f"{role}{self._boxes}"

    def _empty_fixture(self) -> str:
        fixture = inline_fixture({}, 1)
        key = f"{fixture.digest[:40]}.{self.policy.uid}.{self.policy.gid}"
        if not self.slot.keeper.request("has_fixture", key=key)["present"]:
            self.slot.keeper.put_fixture(key, self.policy, fixture.digest, fixture.entries())
        return key


@contextmanager
def _planted(bait: Bait) -> Iterator[None]:
    os.environ[bait.variable] = bait.secret
    try:
        yield
    finally:
        del os.environ[bait.variable]


@contextmanager
def _listening(name: str) -> Iterator[None]:
    """A unix socket that greets everybody who finds it."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(name)
    listener.listen()

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                peer, _ = listener.accept()
                with peer, contextlib.suppress(OSError):
                    peer.sendall(GATEWAY_SAYS)

    thread = threading.Thread(target=serve, name="probe-bait", daemon=True)
    thread.start()
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)
        listener.close()
