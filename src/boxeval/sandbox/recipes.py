"""What boxeval's own images are made from, and the name that follows from it.

A recipe is a folder of `images/`, the recipes that it builds upon and the origin of the root file system. Its
digest covers all of these and names the image: `boxeval/base:<first 16 digits>`. The same tag is the same
recipe, so an image is built once. What it resolved to is a second digest (docs/images.md).
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO

from boxeval.errors import ImageError
from boxeval.settings import resource

ROOTFS, BASE, GRADER = "boxeval/rootfs", "boxeval/base", "boxeval/grader"
AGENT_IMAGES = {
    name: f"boxeval/agents/{name}"
    for name in ("aider", "claude", "codex", "gemini", "mini-swe-agent", "opencode")
}
"""Images that have an agent of others, by the agent's name. They are built when they are wanted."""
PARENTS: dict[str, tuple[str, ...]] = {
    ROOTFS: (),
    "boxeval/shim": (ROOTFS,),
    "boxeval/probe": ("boxeval/shim",),
    "boxeval/keeper": (ROOTFS, "boxeval/probe"),
    BASE: (ROOTFS,),
    GRADER: (ROOTFS,),
    **dict.fromkeys(AGENT_IMAGES.values(), (GRADER,)),
}
"""Every image of boxeval, and the ones that it builds upon."""

FINAL = ("boxeval/keeper", BASE, GRADER)
"""The images that every run needs; of the others some are steps on the way, and some have an agent."""

NEEDS_NETWORK = frozenset({ROOTFS, "boxeval/shim"})
"""Recipes that install packages."""


@dataclass(frozen=True, slots=True)
class RecipeFile:
    """One file of a recipe. Modes do not count: they depend on the checkout, and no recipe needs one."""

    path: str
    content: bytes


@dataclass(frozen=True, slots=True)
class PackedFile:
    """One file out of a package, to be read once. `mode` is 0o644 or 0o755."""

    path: str
    size_bytes: int
    mode: int
    content: IO[bytes]


@dataclass(frozen=True)
class Recipe:
    """How to make one image of boxeval."""

    name: str
    files: tuple[RecipeFile, ...]
    parents: tuple[Recipe, ...]
    origin: str
    """Where the root file system comes from; empty for all but the rootfs."""

    @cached_property
    def digest(self) -> str:
        """SHA-256, in hex, over everything that decides what a build does."""
        parts = {
            "name": self.name,
            "origin": self.origin,
            "parents": [parent.digest for parent in self.parents],
            "files": [[file.path, hashlib.sha256(file.content).hexdigest()] for file in self.files],
        }
        text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def tag(self) -> str:
        """The content-addressed name, `boxeval/NAME:<16 hex digits>`."""
        return f"{self.name}:{self.digest[:16]}"

    @property
    def arguments(self) -> dict[str, str]:
        """Build arguments that name the parents: ROOTFS, PROBE."""
        return {parent.name.partition("/")[2].upper(): parent.tag for parent in self.parents}

    def file(self, path: str) -> bytes:
        """Content of one file. KeyError if there is none."""
        return {file.path: file.content for file in self.files}[path]


def pack(files: Iterable[RecipeFile | PackedFile], context: IO[bytes]) -> None:
    """Write a build context: a tar archive that depends on the files alone, not on who packs it or when."""
    with tarfile.open(fileobj=context, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for file in files:
            member = tarfile.TarInfo(file.path)
            if isinstance(file, PackedFile):
                member.size, member.mode = file.size_bytes, file.mode
                archive.addfile(member, file.content)
            else:
                member.size = len(file.content)
                archive.addfile(member, io.BytesIO(file.content))


def load_recipe(name: str, origin: str, directory: Path | None = None) -> Recipe:
    """Read the recipe of one of boxeval's images from `directory`, by default the shipped `images/`."""
    directory = directory or resource("images")
    return Recipe(
        name=name,
        files=_read_files(directory / name.partition("/")[2]),
        parents=tuple(load_recipe(parent, origin, directory) for parent in PARENTS[name]),
        origin=origin if name == ROOTFS else "",
    )


def _read_files(folder: Path) -> tuple[RecipeFile, ...]:
    """Every file below `folder` in order of its path; caches and hidden files are no part of a recipe."""
    found = []
    for path in folder.rglob("*") if folder.is_dir() else ():
        relative = path.relative_to(folder)
        hidden = any(part.startswith(".") or part == "__pycache__" for part in relative.parts)
        if not hidden and path.is_file():
            found.append(RecipeFile(relative.as_posix(), path.read_bytes()))
    if not any(file.path == "Dockerfile" for file in found):
        raise ImageError(f"{folder}: no Dockerfile there; reinstall boxeval")
    return tuple(sorted(found, key=lambda file: file.path))
