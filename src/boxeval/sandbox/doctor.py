"""What boxeval finds on this machine, and what that means for it (`boxeval doctor`, docs/install.md)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from boxeval.errors import BoxevalError, EngineError, EngineMissing, EngineUnsupported
from boxeval.sandbox.engine import DEFAULT_HOST, Engine, EngineFacts, connect, engine_errors
from boxeval.sandbox.holes import is_repackaged, known_holes
from boxeval.sandbox.images import StoredImage, list_images
from boxeval.sandbox.overlay_trial import try_overlay_volume
from boxeval.sandbox.ownership import Owner
from boxeval.sandbox.recipes import FINAL
from boxeval.settings import Settings, load_settings

State = Literal["ok", "warn", "fail"]
MIB, GIB = 1024**2, 1024**3
FEW_GIB, TOO_FEW_GIB = 5, 1


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. `meaning` is one line: what it means and how to mend it; empty if it is plain."""

    name: str
    value: str
    state: State
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All findings, in the order in which a reader wants them."""

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """True if nothing found keeps boxeval from working."""
        return all(finding.state != "fail" for finding in self.findings)


def examine(environ: Mapping[str, str] = os.environ) -> Diagnosis:
    """Look at the engine, its images and this machine. Never raises for what it finds, and leaves nothing."""
    settings = load_settings(environ)
    return Diagnosis((*_look_at_engine(environ, settings), *_look_at_machine(settings)))


def _look_at_engine(environ: Mapping[str, str], settings: Settings) -> Iterator[Finding]:
    host = environ.get("DOCKER_HOST") or DEFAULT_HOST
    try:
        engine = connect(dict(environ))
    except EngineMissing as error:
        yield Finding("engine", f"none at {host}", "fail", str(error))
        return
    try:
        facts = engine.facts
        yield Finding("engine", f"{facts.name} {facts.version} at {host}", "ok")
        yield from _describe(facts)
        yield from _holes(facts)
        yield from _limits(engine)
        yield from _images_and_workspaces(engine, settings)
        yield from _engine_disk(engine)
    except EngineError as error:
        yield Finding("engine", host, "fail", f"it answers, but then failed: {error}")
    finally:
        engine.close()


def _describe(facts: EngineFacts) -> Iterator[Finding]:
    yield Finding("api", facts.api_version, "ok")
    yield Finding("runtime", f"{facts.runtime} {facts.runtime_version}", "ok")
    yield Finding("system", f"{facts.os}, kernel {facts.kernel}, {facts.architecture}", "ok")
    yield Finding("cgroups", f"version {facts.cgroup_version}", "ok")
    yield (
        Finding("storage driver", facts.storage_driver, "ok")
        if facts.storage_driver in {"overlay2", "overlayfs"}
        else Finding(
            "storage driver", facts.storage_driver, "warn", "slower than overlay2, which boxeval is tried on"
        )
    )
    yield (
        Finding(
            "seccomp",
            "off",
            "fail",
            "boxes would run without a filter of system calls; enable it in the engine",
        )
        if facts.seccomp in {"none", "unconfined"}
        else Finding("seccomp", facts.seccomp, "ok")
    )
    yield Finding("rootless", "yes" if facts.rootless else "no", "ok")
    yield Finding("processors", str(facts.cpus), "ok")
    few = facts.memory_bytes < 2 * GIB
    yield Finding(
        "memory",
        f"{facts.memory_bytes / GIB:.1f} GiB",
        "warn" if few else "ok",
        "less than 2 GiB: run with --jobs 1" if few else "",
    )


def _holes(facts: EngineFacts) -> Iterator[Finding]:
    """Holes by version. One that boxeval gives no opening to is no warning."""
    engine = {"docker": facts.version} if facts.name == "docker" else {}
    for hole, version in known_holes({**facts.components, **engine}):
        first, *others = hole.names
        value = f"{hole.component} {version} is older than {' and '.join(hole.fixed)}"
        if is_repackaged(version):
            value += ", but may be patched by the distribution"
        also = f"; also {', '.join(others)}" if others else ""
        meaning = f"{hole.what}; boxeval: {hole.answer}{also}"
        yield Finding(first, value, "ok" if hole.avoided else "warn", meaning)


_LIMITS = {
    "MemoryLimit": "memory",
    "SwapLimit": "swap",
    "PidsLimit": "processes",
    "CpuCfsQuota": "processors",
}


def _limits(engine: Engine) -> Iterator[Finding]:
    with engine_errors("engine info"):
        info: dict[str, Any] = engine.api.info()
    missing = [word for key, word in _LIMITS.items() if not info.get(key)]
    if missing:
        meaning = (
            "a policy that sets them is refused; turn the cgroup controllers on (swapaccount=1 for swap)"
        )
        yield Finding("limits", f"no limit on {', '.join(missing)}", "fail", meaning)
    else:
        yield Finding("limits", ", ".join(_LIMITS.values()), "ok")


def _images_and_workspaces(engine: Engine, settings: Settings) -> Iterator[Finding]:
    current = {image.tag.partition(":")[0]: image for image in list_images(engine) if image.current}
    for name in FINAL:
        if image := current.get(name):
            yield Finding(name, f"{image.tag}, {image.size_bytes / MIB:.1f} MiB", "ok")
        else:
            yield Finding(name, "not built", "warn", "the next run builds it, or now: boxeval images build")
    yield _workspaces(engine, settings, next((current[name] for name in FINAL if name in current), None))


def _workspaces(engine: Engine, settings: Settings, image: StoredImage | None) -> Finding:
    name = "overlay volumes"
    try:
        engine.require_overlay_volumes()
        if image is None:
            return Finding(name, "not tried", "warn", "no image to try it with yet: boxeval images build")
        try_overlay_volume(engine, Owner.here(settings.data_dir), image.image_id)
    except EngineUnsupported as error:
        return Finding(name, "no", "fail", str(error))
    except (BoxevalError, OSError) as error:
        return Finding(name, "do not work", "fail", f"workspaces need them: {error}")
    return Finding(name, "work", "ok")


def _engine_disk(engine: Engine) -> Iterator[Finding]:
    if engine.host.startswith("unix://"):
        yield from _disk("engine's disk", Path(engine.facts.root_dir))


def _look_at_machine(settings: Settings) -> Iterator[Finding]:
    yield from _disk("disk for results", settings.data_dir)
    tools = [tool for tool in ("mmdebstrap", "debootstrap") if shutil.which(tool)]
    yield (
        Finding("base from packages", ", ".join(tools), "ok")
        if tools
        else Finding(
            "base from packages",
            "no tool",
            "warn",
            "needed only where no registry can be reached: apt-get install mmdebstrap",
        )
    )


def _disk(name: str, path: Path) -> Iterator[Finding]:
    while not path.exists() and path != path.parent:
        path = path.parent
    try:
        free = shutil.disk_usage(path).free / GIB
    except OSError:
        return
    state: State = "fail" if free < TOO_FEW_GIB else "warn" if free < FEW_GIB else "ok"
    meaning = "" if state == "ok" else "make room: boxeval images prune, boxeval clean --cache"
    yield Finding(name, f"{free:.0f} GiB free at {path}", state, meaning)
