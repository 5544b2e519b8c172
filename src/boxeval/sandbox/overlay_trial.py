"""A real trial of what workspaces need: an overlay volume over a tmpfs volume that another box holds."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
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
    name = f"boxeval-doctor-{secrets.token_hex(6)}"
    with ExitStack() as undo, engine_errors("overlay volume"):
        labels = owner.labels("doctor", "doctor", LIFETIME_S)
        place = _volume(
            engine, undo, f"{name}-slot", {"type": "tmpfs", "device": "tmpfs", "o": "size=1m"}, labels
        )
        holder = undo.enter_context(
            _container(
                engine, f"{name}-holder", image_id, f"{_PREPARE} && exec sleep {LIFETIME_S}", labels, "slot"
            )
        )
        engine.api.start(holder)
        _run_inside(engine, holder, "while [ ! -s /slot/low/file ]; do sleep 0.01; done")
        options = f"lowerdir={place}/low,upperdir={place}/up,workdir={place}/work,{OVERLAY}"
        _volume(
            engine, undo, f"{name}-merged", {"type": "overlay", "device": "overlay", "o": options}, labels
        )
        writer = undo.enter_context(_container(engine, f"{name}-writer", image_id, _WRITE, labels, "merged"))
        engine.api.start(writer)
        if engine.api.wait(writer, timeout=LIFETIME_S)["StatusCode"] != 0:
            raise EngineError("overlay volume: a container could not read and write through it")
        _run_inside(engine, holder, _CHECK)


def _volume(
    engine: Engine, undo: ExitStack, name: str, options: dict[str, str], labels: dict[str, str]
) -> str:
    answer: dict[str, Any] = engine.api.create_volume(name, "local", options, labels)
    undo.callback(remove_volume, engine, name)
    return str(answer["Mountpoint"])


@contextmanager
def _container(
    engine: Engine, name: str, image_id: str, script: str, labels: dict[str, str], volume: str
) -> Iterator[str]:
    config = {
        "Image": image_id,
        "Entrypoint": ["sh", "-c", script],
        "User": "0:0",
        "Labels": labels,
        "HostConfig": {
            "NetworkMode": "none",
            "ReadonlyRootfs": True,
            "CapDrop": ["ALL"],
            "LogConfig": {"Type": "none", "Config": {}},
            "Mounts": [
                {"Type": "volume", "Source": f"{name.rpartition('-')[0]}-{volume}", "Target": f"/{volume}"}
            ],
        },
    }
    container = create_container(engine, config, name)
    try:
        yield container
    finally:
        remove_container(engine, container)


def _run_inside(engine: Engine, container: str, script: str) -> None:
    command = engine.api.exec_create(container, ["timeout", "20", "sh", "-c", script])["Id"]
    engine.api.exec_start(command)
    if (code := engine.api.exec_inspect(command)["ExitCode"]) != 0:
        raise EngineError(f"overlay volume: the holder of the layers answered {code} to: {script}")
