"""Removes what a dead controller of this home left behind. Never by name, never what is not ours."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boxeval.errors import EngineError
from boxeval.sandbox.box import remove_container
from boxeval.sandbox.engine import Engine, engine_errors
from boxeval.sandbox.ownership import CACHE, CONTROLLER, OWNER, RUN, Owner, since_boot_s
from boxeval.sandbox.slot import GATEWAY_DIR, remove_volume

SOCKET = "gateway.sock"
"""The one file in a gateway's directory, by which the keeper's forwarder knows it too."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """One object of ours. `kind` is container, directory (of a gateway's socket, on the host) or volume."""

    kind: str
    name: str
    id: str


def orphans(engine: Engine, owner: Owner) -> tuple[Leftover, ...]:
    """What is left of this home's runs whose controller is gone or which are past their deadline."""
    now_s = since_boot_s()
    return _labelled(engine, RUN, lambda labels: owner.is_orphan(labels, now_s))


def of_run(engine: Engine, owner: Owner, run_id: str) -> tuple[Leftover, ...]:
    """Containers and volumes that one controller made for one run."""

    def ours(labels: dict[str, str]) -> bool:
        return labels.get(OWNER) == owner.label and labels.get(CONTROLLER) == owner.controller

    return _labelled(engine, f"{RUN}={run_id}", ours)


def everything(engine: Engine, owner: Owner) -> tuple[Leftover, ...]:
    """Every container and volume of this home, caches and what runs just now included."""
    return _labelled(engine, OWNER, lambda labels: labels.get(OWNER, "").partition(".")[0] == owner.home)


def _labelled(engine: Engine, label: str, ours: Callable[[dict[str, str]], bool]) -> tuple[Leftover, ...]:
    with engine_errors("list what boxeval made"):
        containers: list[dict[str, Any]] = engine.api.containers(all=True, filters={"label": label})
        volumes: dict[str, Any] = engine.api.volumes(filters={"label": label})
        containers = [c for c in containers if ours(c.get("Labels") or {})]
        sockets = {
            mount["Source"]
            for c in containers
            for mount in c.get("Mounts") or ()
            if mount["Destination"] == GATEWAY_DIR and Path(mount["Source"]).is_dir()
        }
        return (
            *(Leftover("container", (c["Names"] or [c["Id"]])[0].lstrip("/"), c["Id"]) for c in containers),
            *(Leftover("directory", path, path) for path in sorted(sockets)),
            *(
                Leftover("volume", v["Name"], v["Name"])
                for v in volumes.get("Volumes") or ()
                if ours(v.get("Labels") or {})
            ),
        )


def caches(engine: Engine, owner: Owner) -> tuple[Leftover, ...]:
    """Cache volumes of this home."""
    with engine_errors("list cache volumes"):
        volumes: dict[str, Any] = engine.api.volumes(filters={"label": CACHE})
    return tuple(
        Leftover("volume", v["Name"], v["Name"])
        for v in volumes.get("Volumes") or ()
        if (v.get("Labels") or {}).get(OWNER) == owner.home
    )


def cache_sizes(engine: Engine, owner: Owner) -> dict[str, int]:
    """Bytes of each cache volume of this home, by name."""
    names = {cache.name for cache in caches(engine, owner)}
    with engine_errors("measure cache volumes"):
        usage: dict[str, Any] = engine.api.df()
    return {
        volume["Name"]: (volume.get("UsageData") or {}).get("Size", 0)
        for volume in usage.get("Volumes") or ()
        if volume["Name"] in names
    }


def clean(engine: Engine, owner: Owner, *, dry: bool = False, cache: bool = False) -> tuple[Leftover, ...]:
    """Remove orphans, with `cache` the cache volumes too; return what was, or with `dry` would be, removed."""
    found = orphans(engine, owner) + (caches(engine, owner) if cache else ())
    if not dry:
        _remove(engine, found)
    return found


def abandon(engine: Engine, owner: Owner, run_id: str) -> bool:
    """Remove at once, running or not, what one controller made for one run; False if there was nothing."""
    found = of_run(engine, owner, run_id)
    _remove(engine, found)
    return bool(found)


def _remove(engine: Engine, found: tuple[Leftover, ...]) -> None:
    """Containers come before volumes in `found`: a volume in use cannot go. All are tried before one is told."""
    failed: list[EngineError] = []
    for leftover in found:
        try:
            _remove_one(engine, leftover)
        except EngineError as error:
            failed.append(error)
    if failed:
        raise failed[0]


def _remove_one(engine: Engine, leftover: Leftover) -> None:
    if leftover.kind == "container":
        remove_container(engine, leftover.id)
    elif leftover.kind == "directory":
        remove_socket(Path(leftover.id))
    else:
        remove_volume(engine, leftover.id)


def remove_socket(directory: Path) -> None:
    """Remove a dead gateway's directory. Nothing but the socket is ours in it: with anything else inside it stays."""
    with contextlib.suppress(OSError):
        (directory / SOCKET).unlink(missing_ok=True)
        directory.rmdir()
