"""A worker slot: a keeper with its network namespace and four capped tmpfs volumes, and the boxes in it.

A workspace is an overlay volume: the fixture below, a layer of the slot's tmpfs above. A grader's workspace
lies over the candidate's layers, so what was collected and hashed is what is graded. Both are mounted by the
engine from paths on its own host, which is why this needs a local engine that runs as root
(docs/adr/0004-keeper.md). Two volumes hold layers, one for candidates and one for graders; the other two are
the home and the `/tmp` that the boxes of a trial with steps share (docs/adr/0008-steps.md).
"""

from __future__ import annotations

import contextlib
import fcntl
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docker.errors import APIError, NotFound

from boxeval.errors import BoxError, EngineError
from boxeval.sandbox.attach import Attachment
from boxeval.sandbox.box import Box, BoxSpec, create_container, remove_container
from boxeval.sandbox.engine import Engine, engine_errors
from boxeval.sandbox.images import ImageInfo
from boxeval.sandbox.job import HOME, TMP
from boxeval.sandbox.keeper import KeeperClient
from boxeval.sandbox.ownership import CACHE, OWNER, Owner
from boxeval.sandbox.settings import MIB, BoxMounts, keeper_seccomp_profile
from boxeval.spec.policy import Policy

KEEPER_CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SYS_ADMIN"]
"""SYS_ADMIN only to read and write which directories of a layer are opaque (docs/adr/0004-keeper.md)."""
OVERLAY = "metacopy=off,redirect_dir=off,index=off"
KEEPER_MEMORY = 512 * MIB
KEEPER_FILES = 8192
FIXTURES_KEPT = 256
FIXTURE_UNUSED_S = 24 * 3600
"""The cache holds what was wanted within a day, and of the rest the latest up to the number above."""
AGENT, GRADE = "agent", "grade"
PRIVATE = {HOME: "home", TMP: "tmp"}
"""Areas that boxes of a trial with steps share, by the path where a box has them."""
GATEWAY_DIR = "/run/boxeval"
"""Where a keeper finds the directory with the gateway's socket."""


@dataclass(frozen=True, slots=True)
class Yard:
    """What all slots of a run share."""

    engine: Engine
    owner: Owner
    run_id: str
    keeper_image: ImageInfo
    cache_dir: Path
    gateway_dir: Path | None
    lifetime_s: float
    session: int = 1
    """How often the run was started: what an earlier controller of it made has other names."""

    @property
    def prefix(self) -> str:
        """How the names of the run's objects begin."""
        return f"boxeval-{self.run_id}" + (f"-{self.session}" if self.session > 1 else "")

    @property
    def fixtures_volume(self) -> str:
        """The cache of complete fixtures of this home."""
        return f"boxeval-fixtures-{self.owner.home}"

    @property
    def tools_volume(self) -> str:
        """The shim, mounted read-only into every box."""
        return f"boxeval-tools-{self.owner.home}-{self.keeper_image.image_id.removeprefix('sha256:')[:12]}"


class Slot:
    """Open with `open`, use from one thread, close always."""

    def __init__(self, yard: Yard, name: str, policy: Policy) -> None:
        self.yard, self.policy = yard, policy
        self._undo = ExitStack()
        self._name = f"{yard.prefix}-{name}"
        self._mountpoints: dict[str, str] = {}
        self._worn_at = time.monotonic() + yard.lifetime_s / 2
        self.keeper_id = ""
        self.keeper: KeeperClient

    @classmethod
    def open(cls, yard: Yard, name: str, policy: Policy) -> Slot:
        """Start a keeper whose tmpfs volumes have the size that `policy` says.

        `name` is used once in a run.
        """
        if slot := cls._whole(yard, name, policy):
            return slot
        with _locked(yard.cache_dir / "tools-mend.lock"):
            if slot := cls._whole(yard, name, policy):
                return slot  # another worker was first
            remove_volume(yard.engine, yard.tools_volume)
            if slot := cls._whole(yard, name, policy):
                return slot
        raise BoxError("the keeper image does not fit this version of boxeval; run: boxeval images build")

    @classmethod
    def _whole(cls, yard: Yard, name: str, policy: Policy) -> Slot | None:
        """An open slot; None, with nothing left of it, if its tools are not those of the image."""
        slot = cls(yard, name, policy)
        try:
            if slot._open():
                return slot
        except BaseException:
            # The first fault is the one to tell; what does not go now is taken by its labels when the run ends.
            with contextlib.suppress(EngineError):
                slot.close()
            raise
        slot.close()
        return None

    def _open(self) -> bool:
        yard, api = self.yard, self.yard.engine.api
        with engine_errors("start the keeper"):
            for volume in (yard.fixtures_volume, yard.tools_volume):
                labels = {CACHE: volume.split("-")[1], OWNER: yard.owner.home}
                answer: dict[str, Any] = api.create_volume(volume, labels=labels)
                self._mountpoints[volume] = answer["Mountpoint"]
            for area, options in self._areas().items():
                self._mountpoints[area] = self._create_volume(
                    f"{self._name}-{area}", {"type": "tmpfs", "device": "tmpfs", "o": options}, "slot"
                )
            # The engine fills the tools volume at the first create; two at once would see it half filled.
            with _locked(yard.cache_dir / "tools.lock"):
                self.keeper_id = create_container(yard.engine, self._keeper_config(), f"{self._name}-keeper")
            self._undo.callback(remove_container, yard.engine, self.keeper_id)
            attachment = Attachment.open(yard.engine, self.keeper_id)
            self._undo.callback(attachment.close)
            api.start(self.keeper_id)
        self.keeper = KeeperClient(attachment, yard.engine.waits)
        hello = self.keeper.request("hello")
        if hello.get("protocol") != 1:
            raise BoxError("the keeper image does not fit this version of boxeval; run: boxeval images build")
        self.keeper.request("trim_fixtures", keep=FIXTURES_KEPT, unused_s=FIXTURE_UNUSED_S)
        return hello.get("tools") is True

    def _areas(self) -> dict[str, str]:
        """The mount options of each area's tmpfs."""
        limits, owner = self.policy.limits, f"uid={self.policy.uid},gid={self.policy.gid}"
        inodes = f"nr_inodes={limits.workspace_inodes}"
        layers = f"size={limits.workspace_mib}m,{inodes},mode=0755"
        return {
            AGENT: layers,
            GRADE: layers,
            PRIVATE[HOME]: f"size={limits.home_mib}m,{inodes},mode=0700,{owner},nosuid,nodev",
            PRIVATE[TMP]: f"size={limits.tmp_mib}m,{inodes},mode=1777,nosuid,nodev",
        }

    def _create_volume(self, name: str, options: dict[str, str], role: str, trial_id: str = "") -> str:
        """Create a volume of this run, to be removed with the slot, and return its path on the engine's host."""
        labels = self.yard.owner.labels(self.yard.run_id, role, self.yard.lifetime_s, trial_id)
        answer: dict[str, Any] = self.yard.engine.api.create_volume(
            name, driver="local", driver_opts=options, labels=labels
        )
        if role == "slot":
            self._undo.callback(remove_volume, self.yard.engine, name)
        return str(answer["Mountpoint"])

    def _keeper_config(self) -> dict[str, Any]:
        yard = self.yard
        labels = yard.owner.labels(yard.run_id, "keeper", yard.lifetime_s)
        mounts = [
            {"Type": "volume", "Source": yard.fixtures_volume, "Target": "/fixtures"},
            {"Type": "volume", "Source": yard.tools_volume, "Target": "/opt/boxeval/tools", "ReadOnly": True},
            *(
                {
                    "Type": "volume",
                    "Source": f"{self._name}-{area}",
                    "Target": f"/slot/{area}",
                    "VolumeOptions": {"Labels": labels},
                }
                for area in self._areas()
            ),
        ]
        if yard.gateway_dir is not None:
            mounts.append(
                {"Type": "bind", "Source": str(yard.gateway_dir), "Target": GATEWAY_DIR, "ReadOnly": True}
            )
        return {
            "Image": yard.keeper_image.image_id,
            "Entrypoint": ["python3", "-I", "/opt/boxeval/keeper"],
            "Cmd": [],
            "User": "0:0",
            "Labels": labels,
            "OpenStdin": True,
            "StdinOnce": True,
            "AttachStdin": True,
            "AttachStdout": True,
            "AttachStderr": True,
            "HostConfig": {
                "NetworkMode": "none",
                "ReadonlyRootfs": True,
                "CapDrop": ["ALL"],
                "CapAdd": KEEPER_CAPABILITIES,
                "SecurityOpt": ["no-new-privileges", f"seccomp={keeper_seccomp_profile()}"],
                "IpcMode": "private",
                "LogConfig": {"Type": "none", "Config": {}},
                "RestartPolicy": {"Name": "no"},
                "Memory": KEEPER_MEMORY,
                "MemorySwap": KEEPER_MEMORY,
                "PidsLimit": 256,
                # Reading a stack of layers holds one directory open for each layer and each level of nesting.
                "Ulimits": [{"Name": "nofile", "Soft": KEEPER_FILES, "Hard": KEEPER_FILES}],
                # A listener of one box must not leave its port in TIME_WAIT for the next.
                "Sysctls": {"net.ipv4.tcp_max_tw_buckets": "0"},
                "Mounts": mounts,
            },
        }

    def reset(self) -> None:
        """Empty all areas. Nothing of a trial may be alive."""
        self.keeper.request("reset")

    def agent_workspace(self, trial_id: str, layer: str, fixture: str, below: Sequence[str] = ()) -> str:
        """An overlay volume with a fresh layer for a candidate; returns the volume's name.

        It lies over existing layers (`AREA.NAME`, topmost first) over a fixture.
        """
        return self.overlay(trial_id, AGENT, layer, below, fixture)

    def grader_workspace(self, trial_id: str, layer: str, below: Sequence[str], fixture: str) -> str:
        """The same for a grader."""
        return self.overlay(trial_id, GRADE, layer, below, fixture)

    def overlay(self, trial_id: str, area: str, layer: str, below: Sequence[str], fixture: str) -> str:
        """The same with a layer in any area."""
        lower = [*(self._upper(name) for name in below), self._fixture(fixture)]
        uid, gid = self.policy.uid, self.policy.gid
        self.keeper.request("layer", name=f"{area}.{layer}", uid=uid, gid=gid)
        place = f"{self._mountpoints[area]}/{layer}"
        options = f"lowerdir={':'.join(lower)},upperdir={place}/upper,workdir={place}/work,{OVERLAY}"
        name = f"{self.yard.prefix}-{trial_id}-{layer}"
        with engine_errors(f"create volume {name}"):
            self._create_volume(
                name, {"type": "overlay", "device": "overlay", "o": options}, "workspace", trial_id
            )
        return name

    def layer_volume(self, trial_id: str, name: str, layer: str) -> str:
        """A volume that is an existing layer (`AREA.NAME`) itself, to be mounted read-only; returns its name."""
        volume = f"boxeval-{self.yard.run_id}-{trial_id}-{name}"
        with engine_errors(f"create volume {volume}"):
            options = {"type": "none", "device": self._upper(layer), "o": "bind"}
            self._create_volume(volume, options, "workspace", trial_id)
        return volume

    def _fixture(self, key: str) -> str:
        return f"{self._mountpoints[self.yard.fixtures_volume]}/{key}/tree"

    def _upper(self, layer: str) -> str:
        area, _, name = layer.partition(".")
        return f"{self._mountpoints[area]}/{name}/upper"

    def box(
        self,
        trial_id: str,
        role: str,
        image: ImageInfo,
        workspace: str,
        lifetime_s: float,
        *,
        shares_private: bool = False,
        bridge: bool = False,
        read_only: Mapping[str, str] | None = None,
        writable: Mapping[str, str] | None = None,
    ) -> Box:
        """Create a box in this slot; it is not started yet. With `bridge` it has a network, to fetch by.

        `read_only` and `writable` are volumes by the path where the box sees them.

        `shares_private`: its home and `/tmp` are those of the slot, which last until the next `reset`.
        """
        private = {path: f"{self._name}-{area}" for path, area in PRIVATE.items()} if shares_private else {}
        private |= writable or {}
        yard = self.yard
        labels = yard.owner.labels(yard.run_id, role, lifetime_s, trial_id)
        spec = BoxSpec(
            name=f"{yard.prefix}-{trial_id}-{role}",
            labels=labels,
            image_id=image.image_id,
            policy=self.policy,
            mounts=BoxMounts(
                workspace,
                yard.tools_volume,
                self.keeper_id,
                image.volumes,
                bridge=bridge,
                private=private,
                read_only=read_only or {},
                labels=labels,
            ),
        )
        return Box(yard.engine, spec)

    @property
    def is_worn(self) -> bool:
        """Whether half of its lifetime is over: past all of it a sweep may take it."""
        return time.monotonic() > self._worn_at

    def close(self) -> None:
        """Remove the keeper and the slot's volumes."""
        self._undo.close()


def remove_volume(engine: Engine, name: str) -> None:
    """Remove a volume; one that is gone already is fine."""
    until = time.monotonic() + engine.waits.remove_s
    with engine_errors(f"remove volume {name}"), contextlib.suppress(NotFound):
        while True:
            try:
                engine.api.remove_volume(name)
                return
            except APIError as error:
                # 409: the container that has it mounted is being removed just now.
                if error.status_code != 409 or time.monotonic() > until:
                    raise
                time.sleep(0.05)


@contextmanager
def _locked(place: Path) -> Iterator[None]:
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
