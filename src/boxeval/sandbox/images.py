"""Images: have one by name, list boxeval's own, prune them. Contract P22, docs/images.md."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from docker.errors import APIError

from boxeval.errors import ImageError, UsageError
from boxeval.sandbox.build import DRAFT, Note, build, lock
from boxeval.sandbox.engine import Engine, engine_errors
from boxeval.sandbox.image_info import (
    LABEL_IMAGE,
    LABEL_RECIPE,
    ImageInfo,
    describe,
    finished,
    inspect,
    require_architecture,
    require_visible_workspace,
)
from boxeval.sandbox.pull import RegistryError, pull
from boxeval.sandbox.recipes import AGENT_IMAGES, FINAL, PARENTS, ROOTFS, load_recipe
from boxeval.sandbox.registry_packages import agent_version
from boxeval.sandbox.rootfs import DEBIAN_IMAGE, ImageOrigin, Origin, packages_origin

__all__ = [
    "BASE",
    "GRADER",
    "KEEPER",
    "AgentImage",
    "ImageInfo",
    "StoredImage",
    "agent_image_states",
    "agent_images",
    "build_all",
    "ensure",
    "list_images",
    "prune",
]

BASE, GRADER, KEEPER = "boxeval/base", "boxeval/grader", "boxeval/keeper"


def ensure(engine: Engine, name: str, *, note: Note) -> ImageInfo:
    """Have the image `name` and say what it is. Builds boxeval's own if need be, pulls others.

    `note` gets one line for every slow step. Raises ImageError with the cause and the mend in one line.
    """
    if name in PARENTS:
        return _ensure_own(engine, name, note)
    if (found := inspect(engine, name)) is None:
        if name.startswith("boxeval/"):
            raise ImageError(f"{name}: boxeval has no such image; it has {', '.join(FINAL)}")
        pull(engine, name, note)
        if (found := inspect(engine, name)) is None:
            raise ImageError(f"{name}: the engine pulled it but does not have it; pull it by hand")
    require_architecture(engine, name, found)
    require_visible_workspace(name, found)
    return describe(name, name, found)


def build_all(engine: Engine, more: tuple[str, ...] = (), *, note: Note) -> tuple[ImageInfo, ...]:
    """Have every image that each run needs, and `more`, building independent ones side by side."""
    choices = _origins(engine, note)
    names = (*FINAL, *more)
    if not all(_find(engine, name, choices) for name in names):
        ensure(engine, ROOTFS, note=note)
    with ThreadPoolExecutor(len(FINAL)) as pool:
        return tuple(pool.map(partial(ensure, engine, note=note), names))


def agent_images(agents: Iterable[str]) -> tuple[str, ...]:
    """The images of agents by name; `all` is all of them. Raises UsageError for one that boxeval does not have."""
    names = list(dict.fromkeys(agents))
    if "all" in names:
        return tuple(AGENT_IMAGES.values())
    for name in names:
        if name not in AGENT_IMAGES:
            raise UsageError(
                f"there is no image of an agent `{name}`; there are {', '.join(AGENT_IMAGES)}, or all"
            )
    return tuple(AGENT_IMAGES[name] for name in names)


@dataclass(frozen=True, slots=True)
class AgentImage:
    """An agent's image as this version of boxeval would make it, and whether it is there."""

    tag: str
    version: str
    built: bool


def agent_image_states(engine: Engine) -> dict[str, AgentImage]:
    """The images of all agents by the agent's name. Nothing is built or pulled."""
    choices = _origins(engine, lambda _: None)
    states = {}
    for agent, name in AGENT_IMAGES.items():
        found = _find(engine, name, choices)
        recipe = load_recipe(name, str(choices[-1]))
        states[agent] = AgentImage(
            found.tag if found else recipe.tag, agent_version(recipe), found is not None
        )
    return states


def _ensure_own(engine: Engine, name: str, note: Note) -> ImageInfo:
    choices = _origins(engine, note)
    if found := _find(engine, name, choices):
        return found
    with lock("origin"):
        origin = _choose(engine, choices, note)
    return build(engine, load_recipe(name, str(origin)), origin, note)


def _find(engine: Engine, name: str, choices: tuple[Origin, ...]) -> ImageInfo | None:
    for origin in choices:
        if found := finished(engine, load_recipe(name, str(origin))):
            return found
    return None


def _origins(engine: Engine, note: Note) -> tuple[Origin, ...]:
    """Where the root file system may come from, best first. `BOXEVAL_BASE_IMAGE` leaves no other choice."""
    own = os.environ.get("BOXEVAL_BASE_IMAGE")
    if not own:
        return (ImageOrigin(DEBIAN_IMAGE, DEBIAN_IMAGE), packages_origin())
    if own in PARENTS:
        raise ImageError(
            f"BOXEVAL_BASE_IMAGE: {own} would be built upon itself; name an image that is not boxeval's"
        )
    # A tag may move, so the recipe holds the image's id; a digest may not.
    return (ImageOrigin(own, own if "@sha256:" in own else ensure(engine, own, note=note).image_id),)


def _choose(engine: Engine, choices: tuple[Origin, ...], note: Note) -> Origin:
    """The origin of a root file system that is here already, else the first that can be had."""
    for origin in choices:
        if finished(engine, load_recipe(ROOTFS, str(origin))):
            return origin
    *others, last = choices
    for origin in others:
        try:
            return _reach(engine, origin, note)
        except RegistryError:
            note("no registry can be reached")
        except ImageError as error:
            note(str(error))
    return _reach(engine, last, note)


def _reach(engine: Engine, origin: Origin, note: Note) -> Origin:
    if isinstance(origin, ImageOrigin):
        ensure(engine, origin.reference, note=note)
    return origin


@dataclass(frozen=True, slots=True)
class StoredImage:
    """One of boxeval's images on the engine. Layers that images share are counted in the size of each.

    `current` is true for what this version of boxeval would use, `in_use` if some container is made from it.
    """

    tag: str
    image_id: str
    size_bytes: int
    current: bool
    in_use: bool


def list_images(engine: Engine) -> tuple[StoredImage, ...]:
    """Boxeval's own images by tag: finished ones, and drafts of builds that died.

    An image that someone built upon ours inherits our labels; only the tag tells them apart.
    """
    current = _current_tags(engine)
    with engine_errors("list images"):
        used = {container["ImageID"] for container in engine.api.containers(all=True)}
        return tuple(
            StoredImage(tag, image["Id"], image["Size"], tag in current, image["Id"] in used)
            for name in sorted(PARENTS)
            for image in engine.api.images(name)
            for tag in sorted(image["RepoTags"] or ())
            if _is_ours(tag, image["Labels"] or {})
        )


def prune(engine: Engine, *, keep_current: bool = True) -> tuple[tuple[StoredImage, ...], int]:
    """Remove boxeval's own images that no container uses. Returns them and the bytes that became free."""
    with lock("prune"), engine_errors("prune images"):
        before = engine.api.df()["LayersSize"]
        removed = tuple(
            image
            for image in list_images(engine)
            if not image.in_use and not (keep_current and image.current) and _remove(engine, image)
        )
        return removed, max(0, before - engine.api.df()["LayersSize"])


def _remove(engine: Engine, image: StoredImage) -> bool:
    try:
        engine.api.remove_image(image.tag)
    except APIError as error:
        # 404: it is gone already; 409: a container was just made from it.
        if error.status_code in (404, 409):
            return False
        raise
    return True


def _current_tags(engine: Engine) -> set[str]:
    """Tags that `ensure` would take. An own base image that is not here is not pulled to find out."""
    own = os.environ.get("BOXEVAL_BASE_IMAGE")
    if own and inspect(engine, own) is None:
        return set()
    choices = _origins(engine, lambda _: None)
    return {load_recipe(name, str(origin)).tag for name in PARENTS for origin in choices}


def _is_ours(tag: str, labels: dict[str, str]) -> bool:
    name, _, version = tag.rpartition(":")
    made_by = labels.get(LABEL_RECIPE, "")
    return version.startswith(DRAFT) or (labels.get(LABEL_IMAGE) == name and version == made_by[:16])
