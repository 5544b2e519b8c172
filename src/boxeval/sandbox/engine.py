"""The way to the container engine: connect, name what is wrong, know what it can do."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import docker
import requests
import urllib3
from docker.errors import APIError, DockerException, ImageNotFound

from boxeval.errors import BoxevalError, EngineError, EngineMissing, EngineUnsupported, ImageError
from boxeval.sandbox.waits import Waits
from boxeval.settings import load_settings

DEFAULT_HOST = "unix:///var/run/docker.sock"
AGAIN_S = 0.2
"""Between two questions whether the engine is back."""
HURRIED_S = 10


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What an engine says of itself, in the words of receipts and of `boxeval doctor`."""

    name: str
    version: str
    api_version: str
    runtime: str
    runtime_version: str
    runtimes: tuple[str, ...]
    components: Mapping[str, str]
    storage_driver: str
    cgroup_version: str
    kernel: str
    architecture: str
    os: str
    cpus: int
    memory_bytes: int
    root_dir: str
    security: tuple[str, ...]

    @property
    def rootless(self) -> bool:
        """True if the daemon itself runs without root."""
        return any("rootless" in option for option in self.security)

    @property
    def user_namespaces(self) -> bool:
        """True if the daemon maps root of containers to another user (userns-remap)."""
        return any("name=userns" in option for option in self.security)

    @property
    def seccomp(self) -> str:
        """Name of the default seccomp profile, or `none`."""
        for option in self.security:
            if "name=seccomp" in option:
                return option.partition("profile=")[2] or "default"
        return "none"


class Engine:
    """One connection pool to one engine. Safe to share between threads."""

    def __init__(self, host: str, client: docker.APIClient, waits: Waits | None = None) -> None:
        self.host = host
        self.api = client
        self.waits = waits or Waits()

    @cached_property
    def facts(self) -> EngineFacts:
        """Ask once; the answer is good for the life of the process."""
        with engine_errors("engine info"):
            return _facts(self.api.info(), self.api.version())

    def answers(self, give_up: Callable[[], bool]) -> bool:
        """Whether the engine answers, or does so again before the longest wait is over or `give_up` says so."""
        until = time.monotonic() + self.waits.request_s
        while True:
            with contextlib.suppress(EngineError), engine_errors("ping"):
                self.api.ping()
                return True
            if give_up() or time.monotonic() > until:
                return False
            time.sleep(AGAIN_S)

    def hurry(self) -> None:
        """From now on wait for each answer for a few seconds only: somebody wants to be gone."""
        self.api.timeout = min(self.waits.request_s, HURRIED_S)

    def require_overlay_volumes(self) -> None:
        """Refuse, by name, an engine on which workspaces cannot be overlay volumes (design decision 3)."""
        facts = self.facts
        why = None
        if facts.name == "podman":
            why = "Podman mounts no overlay volumes through its API"
        elif facts.rootless or facts.user_namespaces:
            why = "in a user namespace the keeper cannot read an overlay's trusted attributes"
        elif not self.host.startswith("unix://"):
            why = f"the engine at {self.host} is remote, and boxes reach boxeval's model gateway by a local socket"
        if why:
            raise EngineUnsupported(
                f"{facts.name} {facts.version}: {why}; use a local Docker Engine that runs as root"
            )

    def require_runtime(self, name: str | None) -> None:
        """Refuse, by name, a policy's runtime that this engine does not have."""
        if name and name not in (known := self.facts.runtimes):
            raise EngineUnsupported(
                f"runtime {name}: {self.facts.name} has {', '.join(known)}; register it there or change the policy"
            )

    def close(self) -> None:
        """Drop all connections."""
        self.api.close()


def _facts(info: dict[str, Any], version: dict[str, Any]) -> EngineFacts:
    components = {c["Name"]: c.get("Version", "") for c in version.get("Components") or ()}
    runtime = info.get("DefaultRuntime") or "unknown"
    return EngineFacts(
        name="podman" if any("Podman" in name for name in components) else "docker",
        version=version.get("Version", "unknown"),
        api_version=version.get("ApiVersion", "unknown"),
        runtime=runtime,
        runtime_version=components.get(runtime, "unknown"),
        runtimes=tuple(sorted(info.get("Runtimes") or ())),
        components=components,
        storage_driver=info.get("Driver", "unknown"),
        cgroup_version=str(info.get("CgroupVersion") or "1"),
        kernel=info.get("KernelVersion", "unknown"),
        architecture=info.get("Architecture", "unknown"),
        os=info.get("OperatingSystem", "unknown"),
        cpus=info.get("NCPU", 1),
        memory_bytes=info.get("MemTotal", 0),
        root_dir=info.get("DockerRootDir", ""),
        security=tuple(info.get("SecurityOptions") or ()),
    )


def connect(environ: dict[str, str] | None = None) -> Engine:
    """Connect to `DOCKER_HOST`, else to the default socket. Fails with one line that says what to do."""
    environ = dict(os.environ) if environ is None else environ
    host = environ.get("DOCKER_HOST") or DEFAULT_HOST
    waits = Waits(load_settings(environ).engine_timeout_s)
    if host.startswith("unix://"):
        _check_socket(Path(host.removeprefix("unix://")), waits)
    try:
        # `auto` negotiates down to what an older engine speaks.
        client = docker.APIClient(base_url=host, version="auto", timeout=waits.request_s, num_pools=64)
    except (DockerException, requests.exceptions.RequestException) as error:
        raise EngineMissing(
            f"no Docker Engine answers at {host}: {_first_line(error)}; start it, or set DOCKER_HOST"
        ) from error
    return Engine(host, client, waits)


def _check_socket(path: Path, waits: Waits) -> None:
    if not path.exists():
        raise EngineMissing(
            f"no Docker Engine: {path} does not exist; install it (Debian, Ubuntu: apt-get install docker.io), "
            "start dockerd, or set DOCKER_HOST"
        )
    if not os.access(path, os.R_OK | os.W_OK):
        raise EngineMissing(
            f"no permission on {path}: add your user to the group that owns it (usually docker), or run as root"
        )
    # The SDK would leave its socket open when this fails.
    with socket.socket(socket.AF_UNIX) as trial:
        trial.settimeout(waits.request_s)
        try:
            trial.connect(str(path))
        except OSError as error:
            raise EngineMissing(
                f"no Docker Engine answers at {path}: {error}; start it, or set DOCKER_HOST"
            ) from error


@contextmanager
def engine_errors(what: str) -> Iterator[None]:
    """Turn every failure of the SDK or the transport into an EngineError that names the action."""
    try:
        yield
    except BoxevalError:
        raise
    except ImageNotFound as error:
        raise ImageError(f"{what}: {_first_line(error)}") from error
    except (
        DockerException,
        requests.exceptions.RequestException,
        urllib3.exceptions.HTTPError,
        OSError,
    ) as error:
        raise EngineError(f"{what}: {_first_line(error)}") from error
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        # Whatever is asked in here is taken apart in here: the answer was not of the form that engines give.
        raise EngineError(f"{what}: the engine's answer makes no sense ({error!r:.200})") from error


def _first_line(error: BaseException) -> str:
    if isinstance(error, APIError) and error.explanation:
        text = error.explanation if isinstance(error.explanation, str) else json.dumps(error.explanation)
    else:
        text = str(error) or type(error).__name__
    return text.strip().splitlines()[0][:400] if text.strip() else type(error).__name__
