"""What the engine says of an image, and the labels by which boxeval knows its own."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import Any

from docker.errors import NotFound

from boxeval.errors import ImageError
from boxeval.sandbox.engine import Engine, engine_errors
from boxeval.sandbox.job import WORKSPACE
from boxeval.sandbox.recipes import PARENTS, Recipe
from boxeval.sandbox.rootfs import PATH_ENV

KEPT_FREE = ("/.boxeval/", "/proc/", "/sys/", "/dev/")
"""Where no image may have a volume, beside the inside of the workspace."""
LABEL_IMAGE = "boxeval.image"
LABEL_RECIPE = "boxeval.recipe"
LABEL_PACKAGES = "boxeval.packages"
LABEL_CACHE = "boxeval.cache"


@dataclass(frozen=True, slots=True)
class ImageInfo:
    """One image that the engine has. Digests are SHA-256 in hex; `image_id` has `sha256:` in front.

    `volumes` are the paths that the image declares as volumes.
    """

    name: str
    tag: str
    image_id: str
    recipe: str | None
    packages: str | None
    path_env: str
    size_bytes: int
    volumes: tuple[str, ...] = ()


def inspect(engine: Engine, reference: str) -> dict[str, Any] | None:
    """The engine's own record of an image, or None if it has none of that name."""
    with engine_errors(f"inspect {reference}"):
        try:
            answer: dict[str, Any] = engine.api.inspect_image(reference)  # type: ignore[no-untyped-call]
        except NotFound:
            return None
        return answer if answer["Id"] else None


def finished(engine: Engine, recipe: Recipe) -> ImageInfo | None:
    """The image that was made by exactly this recipe, if it is here."""
    found = inspect(engine, recipe.tag)
    if found is None or labels(found).get(LABEL_RECIPE) != recipe.digest:
        return None
    return describe(recipe.name, recipe.tag, found)


def labels(image: dict[str, Any]) -> dict[str, str]:
    """Labels of an inspected image."""
    return _config(image).get("Labels") or {}


def describe(name: str, tag: str, image: dict[str, Any]) -> ImageInfo:
    """Read an inspected image. Recipe and packages are told of boxeval's own only: labels are inherited."""
    paths = [entry[5:] for entry in _config(image).get("Env") or () if entry.startswith("PATH=")]
    own = labels(image) if name in PARENTS else {}
    return ImageInfo(
        name=name,
        tag=tag,
        image_id=image["Id"],
        recipe=own.get(LABEL_RECIPE),
        packages=own.get(LABEL_PACKAGES),
        path_env=paths[-1] if paths else PATH_ENV,
        size_bytes=image.get("Size", 0),
        volumes=_volumes(image),
    )


_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""The kernel's words, which an engine uses for itself, in the words that images use."""


def architecture_of(engine: Engine) -> str:
    """The engine's architecture in the words of images."""
    return _ARCHITECTURES.get(engine.facts.architecture, engine.facts.architecture)


def require_architecture(engine: Engine, name: str, image: dict[str, Any]) -> None:
    """Refuse an image that this engine could run under emulation at best."""
    ours = architecture_of(engine)
    theirs = image.get("Architecture") or ours
    if theirs != ours:
        raise ImageError(f"{name}: made for {theirs}, this engine runs {ours}; name an image for {ours}")


def require_visible_workspace(name: str, image: dict[str, Any]) -> None:
    """Refuse an image with a volume where it would hide the fixture, the shim or the kernel's own files."""
    for volume in _volumes(image):
        if volume.startswith(f"{WORKSPACE}/") or f"{volume}/".startswith(KEPT_FREE):
            raise ImageError(f"{name}: declares a volume at {volume}, which must stay free; build it without")


def _volumes(image: dict[str, Any]) -> tuple[str, ...]:
    return tuple(posixpath.normpath(volume) for volume in _config(image).get("Volumes") or ())


def _config(image: dict[str, Any]) -> dict[str, Any]:
    return image.get("Config") or {}
