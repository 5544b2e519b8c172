"""A real trial of what workspaces need: an overlay volume over a tmpfs volume that another box holds."""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from boxeval.errors import EngineError
from boxeval.sandbox.box import create_container, remove_container
from boxeval.sandbox.engine import Engine, engine_errors
from boxeval.sandbox.ownership import Owner
from boxeval.sandbox.slot import OVERLAY, remove_volume

LIFETIME_S = 120
_PREPARE = "mkdir /slot/low /slot/up /slot/work && echo below > /slot/low/file"
_WRITE = 'test "$(cat /merged/file)" = below && echo above > /merged/file'
_CHECK = 'test "$(cat /slot/up/file)" = above && test "$(cat /slot/low/file)" = below'


def try_overlay_volume(engine: Engine, owner: Owner, image_id: str) -> None:
    """Write through an overlay volume and find that in its upper directory alone, else raise EngineError."""
    with ExitStack() as undo, engine_errors("overlay volume"):
        name = f"boxeval-doctor-{secrets.token_hex(6)}"
        trial = _Trial(engine, undo, name, image_id, owner.labels("doctor", "doctor", LIFETIME_S))
        place = trial.volume("slot", {"type": "tmpfs", "device": "tmpfs", "o": "size=1m"})
        # What a tmpfs holds is gone when nothing mounts it any more.
        trial.start("holder", "slot", f"exec sleep {LIFETIME_S}")
        trial.run("preparer", "slot", _PREPARE)
        options = f"lowerdir={place}/low,upperdir={place}/up,workdir={place}/work,{OVERLAY}"
        trial.volume("merged", {"type": "overlay", "device": "overlay", "o": options})
        trial.run("writer", "merged", _WRITE)
        trial.run("checker", "slot", _CHECK)


@dataclass(frozen=True, slots=True)
class _Trial:
    engine: Engine
    undo: ExitStack
    name: str
    image_id: str
    labels: dict[str, str]

    def volume(self, volume: str, options: dict[str, str]) -> str:
        """Create a volume; returns its path on the engine's host."""
        name = f"{self.name}-{volume}"
        answer: dict[str, Any] = self.engine.api.create_volume(name, "local", options, self.labels)
        self.undo.callback(remove_volume, self.engine, name)
        return str(answer["Mountpoint"])

    def start(self, role: str, volume: str, script: str) -> str:
        """Start a script in a container that sees the volume; returns the container's id."""
        mount = {"Type": "volume", "Source": f"{self.name}-{volume}", "Target": f"/{volume}"}
        config = {
            "Image": self.image_id,
            "Entrypoint": ["sh", "-c", script],
            "User": "0:0",
            "Labels": self.labels,
            "HostConfig": {
                "NetworkMode": "none",
                "ReadonlyRootfs": True,
                "CapDrop": ["ALL"],
                "LogConfig": {"Type": "none", "Config": {}},
                "Mounts": [mount],
            },
        }
        container = create_container(self.engine, config, f"{self.name}-{role}")
        self.undo.callback(remove_container, self.engine, container)
        self.engine.api.start(container)
        return container

    def run(self, role: str, volume: str, script: str) -> None:
        """The same, and wait for its end, which must be a success."""
        container = self.start(role, volume, script)
        code = self.engine.api.wait(container, timeout=LIFETIME_S)["StatusCode"]
        if code != 0:
            raise EngineError(f"overlay volume: the {role} ended with status {code}: {script}")
