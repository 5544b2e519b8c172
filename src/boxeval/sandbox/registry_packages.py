"""Packages of agents from npm and PyPI, fetched with this machine's own clients and pinned by hash.

An image build reaches neither registry, so what goes into an agent's image is fetched here, into the cache, and
becomes a part of the build context. `packages.json` in the recipe's folder says what, and with which hash; what does
not have that hash never gets into a context. No package's own install script is ever run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from boxeval.errors import ImageError
from boxeval.sandbox.recipes import PackedFile, Recipe

LOCK = "packages.json"
REQUIREMENTS = "requirements.txt"
LISTED = "packages.txt"
"""Of the build context: `registry:name=version` lines, for the image's own list of packages."""

FILES = "files/"
"""Where the files of packages stand in a build context."""
FETCH_S = 1200
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([A-Za-z0-9.!+_-]+)", re.MULTILINE)
_DATA = re.compile(r"[^/]+\.data/(?P<scheme>[^/]+)/(?P<rest>.+)")
_WHEELS = {
    "amd64": ("manylinux_2_34_x86_64", "manylinux_2_28_x86_64", "manylinux2014_x86_64", "linux_x86_64"),
    "arm64": ("manylinux_2_34_aarch64", "manylinux_2_28_aarch64", "manylinux2014_aarch64", "linux_aarch64"),
}


def wants_packages(recipe: Recipe) -> bool:
    """Whether a recipe has a lock of packages."""
    return any(file.path == LOCK for file in recipe.files)


def agent_version(recipe: Recipe) -> str:
    """The version of the agent that a recipe pins."""
    return str(json.loads(recipe.file(LOCK))["version"])


def needs_python(recipe: Recipe) -> bool:
    """Whether what is fetched depends on the image's version of Python."""
    return any(file.path == REQUIREMENTS for file in recipe.files)


def listed(recipe: Recipe, architecture: str) -> bytes:
    """What the image's list of packages gains."""
    lock = json.loads(recipe.file(LOCK))
    lines = {f"npm:{entry['name']}={entry['version']}" for entry in _npm(lock, architecture)}
    if needs_python(recipe):
        lines |= {f"pypi:{name}={version}" for name, version in _PINNED.findall(_requirements(recipe))}
    return "".join(f"{line}\n" for line in sorted(lines)).encode()


def fetch(recipe: Recipe, architecture: str, python: str | None, cache: Path) -> Iterator[PackedFile]:
    """Every file that the recipe's packages give to the image.

    `architecture` is in the words of images, `python` like "3.11".
    Raises ImageError if something cannot be had, or is not what the lock says.
    """
    lock = json.loads(recipe.file(LOCK))
    for entry in _npm(lock, architecture):
        yield from _npm_files(entry, cache / "npm")
    if needs_python(recipe) and python is not None:
        wheels = cache / "pypi" / f"{recipe.digest[:16]}-{architecture}-{python}"
        hashes = set(_HASH.findall(_requirements(recipe)))
        if not wheels.is_dir():
            _download_wheels(recipe, architecture, python, wheels)
        for wheel in sorted(wheels.glob("*.whl")):
            if hashlib.sha256(wheel.read_bytes()).hexdigest() not in hashes:
                shutil.rmtree(wheels)
                raise ImageError(f"{wheel.name}: its hash is not in {recipe.name}'s lock; fetch it again")
            yield from _wheel_files(wheel)


def _requirements(recipe: Recipe) -> str:
    return recipe.file(REQUIREMENTS).decode()


def _npm(lock: dict[str, Any], architecture: str) -> list[dict[str, Any]]:
    found = [entry for entry in lock.get("npm", ()) if entry.get("architecture") in (None, architecture)]
    if lock.get("npm") and not any(
        entry.get("architecture") in (None, architecture) for entry in lock["npm"]
    ):
        raise ImageError(f"{lock['name']}: there is no package of it for {architecture}")
    return found


def _npm_files(entry: dict[str, Any], cache: Path) -> Iterator[PackedFile]:
    name = f"{entry['name']}@{entry['version']}"
    archive = cache / f"{name.replace('/', '+')}.tgz"
    if not archive.exists():
        _npm_pack(name, archive)
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if f"sha512-{digest}" != entry["integrity"]:
        archive.unlink()
        raise ImageError(f"{name}: its hash is not the one of the lock; it was removed from the cache")
    with tarfile.open(archive) as members:
        for member in members:
            target = _kept(member.name, entry["keep"])
            content = members.extractfile(member) if target and member.isreg() else None
            if target and content is not None:
                yield PackedFile(
                    FILES + target, member.size, 0o755 if member.mode & 0o100 else 0o644, content
                )


def _kept(name: str, keep: dict[str, str]) -> str | None:
    """Where a member goes: `keep` maps patterns below the package to files, or to folders that end in a slash."""
    path = name.partition("/")[2]
    for pattern, target in keep.items():
        if fnmatchcase(path, pattern):
            return _plain(target + path if target.endswith("/") else target)
    return None


def _plain(path: str) -> str:
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts:
        raise ImageError(f"a package has a file at {path!r}, which is no plain path")
    return pure.as_posix()


def _npm_pack(name: str, archive: Path) -> None:
    with _draft(archive.parent) as scratch:
        _call(["npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", str(scratch), name], name)
        packed = list(scratch.glob("*.tgz"))
        if len(packed) != 1:
            raise ImageError(f"{name}: npm packed {len(packed)} archives")
        packed[0].replace(archive)


def _download_wheels(recipe: Recipe, architecture: str, python: str, wheels: Path) -> None:
    with _draft(wheels.parent) as scratch:
        (scratch / REQUIREMENTS).write_text(_requirements(recipe))
        command = [
            *_pip(),
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--require-hashes",
        ]
        command += ["--only-binary=:all:", "--implementation=cp", f"--python-version={python}"]
        command += [f"--abi=cp{python.replace('.', '')}", "--abi=abi3", "--abi=none"]
        command += [f"--platform={platform}" for platform in _WHEELS[architecture]]
        command += ["-r", str(scratch / REQUIREMENTS), "-d", str(scratch / "wheels")]
        _call(command, f"the packages of {recipe.name} for Python {python}")
        (scratch / "wheels").replace(wheels)


def _pip() -> list[str]:
    """pip of this interpreter, else one in PATH: a virtual environment may have none."""
    own = [sys.executable, "-m", "pip"]
    if subprocess.run([*own, "--version"], capture_output=True, check=False).returncode == 0:
        return own
    return ["pip3"]


@contextmanager
def _draft(parent: Path) -> Iterator[Path]:
    """A folder beside the final place, so that what is moved there is whole or not there."""
    parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".fetch-", dir=parent) as folder:
        yield Path(folder)


def _wheel_files(wheel: Path) -> Iterator[PackedFile]:
    """The importable files of a wheel, as an installer lays them out; its scripts are left out."""
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            path = info.filename
            if data := _DATA.fullmatch(path):
                if data["scheme"] not in ("purelib", "platlib"):
                    continue
                path = data["rest"]
            if not info.is_dir():
                executable = (info.external_attr >> 16) & 0o100
                with archive.open(info) as content:
                    yield PackedFile(
                        FILES + _plain(path), info.file_size, 0o755 if executable else 0o644, content
                    )


def _call(command: list[str], what: str) -> None:
    if shutil.which(command[0]) is None:
        raise ImageError(
            f"{what}: {command[0]} is needed to fetch it; install it, or build on a machine that has it"
        )
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=FETCH_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise ImageError(f"{what}: {command[0]} did not end within {FETCH_S} s") from None
    if done.returncode != 0:
        said = " | ".join(line for line in done.stderr.decode(errors="replace").splitlines() if line.strip())
        raise ImageError(f"{what} could not be fetched: {said[-400:] or 'no reason was given'}")
