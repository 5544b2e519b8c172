"""The root file system under boxeval's images: pulled where it can be, else made from Debian packages.

Where it comes from, its origin, is part of the recipe's digest, so the two never share a name.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from boxeval.errors import ImageError
from boxeval.sandbox.apt_sources import Archive, archives
from boxeval.sandbox.engine import Engine, engine_errors
from boxeval.sandbox.recipes import Recipe

DEBIAN_IMAGE = "debian:bookworm-slim@sha256:4724b8cc51e33e398f0e2e15e18d5ec2851ff0c2280647e1310bc1642182655d"
"""An index of all architectures, recorded in July 2026."""

DEFAULT_RELEASE = "bookworm"
SOURCE_DATE_EPOCH = "1767225600"
"""2026-01-01: no file is newer, so that the same packages give the same layer."""

PATH_ENV = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ImageOrigin:
    """Start from an image. `content` is what makes it one and the same: a pinned reference or an image id."""

    reference: str
    content: str

    def __str__(self) -> str:
        return f"image {self.content}"


@dataclass(frozen=True, slots=True)
class PackagesOrigin:
    """Make it from the packages of one release."""

    release: str

    def __str__(self) -> str:
        return f"packages {self.release}"


Origin = ImageOrigin | PackagesOrigin


def packages_origin(os_release: Path = Path("/etc/os-release")) -> PackagesOrigin:
    """This machine's own release if it is Debian or Ubuntu, whose keyring and mirror are then at hand."""
    facts = read_os_release(os_release)
    if facts.get("ID") in {"debian", "ubuntu"} and (release := facts.get("VERSION_CODENAME")):
        return PackagesOrigin(release)
    return PackagesOrigin(DEFAULT_RELEASE)


def read_os_release(path: Path = Path("/etc/os-release")) -> dict[str, str]:
    """The fields of an os-release file; empty if there is none."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError:
        return {}
    return {key: value.strip("\"'") for key, _, value in (line.partition("=") for line in lines) if value}


def import_packages(engine: Engine, recipe: Recipe, release: str, draft: str, note: Note) -> None:
    """Make the root file system with mmdebstrap or debootstrap; import it as `draft`."""
    tool = _bootstrap_tool(note)
    note(f"making {recipe.tag} from packages of {release} with {tool}, which takes half a minute or more")
    packages = recipe.file("packages").decode().split()
    command = (_mmdebstrap if tool == "mmdebstrap" else _debootstrap)(
        release, packages, recipe.file("finish").decode(), archives(release)
    )
    repository, _, tag = draft.partition(":")
    with tempfile.TemporaryDirectory(prefix="boxeval-rootfs-") as scratch:
        archive = Path(scratch) / "rootfs.tar"
        with archive.open("wb") as out:
            _call(command, os.environ | {"SOURCE_DATE_EPOCH": SOURCE_DATE_EPOCH}, out)
        with engine_errors(f"import {recipe.name}"):
            engine.api.import_image(
                str(archive), repository, tag, changes=[f"ENV PATH={PATH_ENV}", 'CMD ["bash"]']
            )


def _mmdebstrap(release: str, packages: list[str], finish: str, sources: tuple[Archive, ...]) -> list[str]:
    """A command that writes the archive to its standard output. With user namespaces it needs no root."""
    return [
        "mmdebstrap",
        "--variant=minbase",
        f"--include={','.join(packages)}",
        f'--customize-hook=chroot "$1" sh -c {shlex.quote(finish)}',
        "--format=tar",
        release,
        "-",
        *(archive.line() for archive in sources),
    ]


_DEBOOTSTRAP = """
set -eu
release=$1 include=$2 finish=$3 sources=$4 epoch=$5; shift 5
root=$(mktemp -d --tmpdir boxeval-debootstrap.XXXXXX)
trap 'rm -rf --one-file-system "$root"' EXIT
trap 'exit 1' INT TERM HUP
{
    debootstrap --variant=minbase --components=main --include="$include" "$release" "$root" "$@"
    [ -z "$sources" ] || printf '%s\n' "$sources" > "$root/etc/apt/sources.list"
    chroot "$root" sh -ec 'apt-get update -q; DEBIAN_FRONTEND=noninteractive apt-get upgrade -q -y'
    chroot "$root" sh -c "$finish"
    rm -f "$root/etc/resolv.conf" "$root/etc/hostname"
} >&2
cd "$root"
tar --one-file-system --exclude='./dev/*' --numeric-owner --sort=name --mtime="@$epoch" --clamp-mtime -cf - .
"""


def _debootstrap(release: str, packages: list[str], finish: str, sources: tuple[Archive, ...]) -> list[str]:
    """The same with debootstrap; its mounts stay in a mount namespace that ends with it."""
    if os.geteuid() != 0:
        raise ImageError(
            "no registry can be reached, and debootstrap needs root: install mmdebstrap, or run once as root"
        )
    lines = "\n".join(archive.line() for archive in sources)
    mirror = [archive.uri for archive in sources if archive.suite == release][:1]
    arguments = [release, ",".join(packages), finish, lines, SOURCE_DATE_EPOCH, *mirror]
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", _DEBOOTSTRAP, "sh", *arguments]


def _bootstrap_tool(note: Note) -> str:
    for tool in ("mmdebstrap", "debootstrap"):
        if shutil.which(tool):
            return tool
    if os.geteuid() == 0 and read_os_release().get("ID") in {"debian", "ubuntu"}:
        note("no registry can be reached and mmdebstrap is missing: installing it with apt-get")
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        _call(["apt-get", "update", "-q"], environment)
        _call(["apt-get", "install", "-q", "-y", "--no-install-recommends", "mmdebstrap"], environment)
        return "mmdebstrap"
    raise ImageError(
        "no registry can be reached and there is nothing to make the base image with: "
        "install mmdebstrap (Debian, Ubuntu: apt-get install mmdebstrap), or set BOXEVAL_BASE_IMAGE"
    )


def stop_bootstrap() -> None:
    """End commands that make a root file system, with time for them to clean up."""
    for process in tuple(_RUNNING):
        process.terminate()


def _call(command: list[str], env: Mapping[str, str], out: IO[bytes] | int = subprocess.DEVNULL) -> None:
    """Run a command in a session of its own.

    When we are interrupted it gets a signal and time to clean up.
    """
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=log, start_new_session=True
        )
        _RUNNING.add(process)
        try:
            status = process.wait(_BUILD_LIMIT_S)
        except BaseException as error:
            process.terminate()
            try:
                process.wait(_CLEANUP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise ImageError(f"{command[0]} did not end within {_BUILD_LIMIT_S} s") from error
            raise
        finally:
            _RUNNING.discard(process)
        if status != 0:
            raise ImageError(f"{command[0]} ended with status {status}: {_tail(log)}")


_RUNNING: set[subprocess.Popen[bytes]] = set()
_BUILD_LIMIT_S = 1200
_CLEANUP_S = 20


def _tail(log: IO[bytes]) -> str:
    """The last lines of a log as one line."""
    log.seek(0)
    lines = [line.strip() for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    return " | ".join(lines[-4:])[-600:] or "it said nothing"
