"""Images: find them, build boxeval's own once per recipe, pull the others, list and prune.

Several processes may ask for the same image at once. A lock file per tag lets one of them build while the rest
wait and then find it. An image gets its final tag in its last step, so what can be found under a tag is whole.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import tarfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from docker.errors import ImageNotFound, NotFound

from boxeval.errors import ImageError, StorageError
from boxeval.sandbox.engine import Engine, engine_errors
from boxeval.sandbox.pull import RegistryError, pull
from boxeval.sandbox.recipes import FINAL, NEEDS_NETWORK, PARENTS, ROOTFS, Recipe, load_recipe
from boxeval.sandbox.rootfs import (
    DEBIAN_IMAGE,
    PATH_ENV,
    ImageOrigin,
    PackagesOrigin,
    import_packages,
    packages_origin,
)
from boxeval.settings import load_settings

BASE, GRADER, KEEPER = "boxeval/base", "boxeval/grader", "boxeval/keeper"
PACKAGES_FILE = "/usr/share/boxeval/packages.txt"

LABEL_IMAGE = "boxeval.image"
LABEL_RECIPE = "boxeval.recipe"
LABEL_PACKAGES = "boxeval.packages"
LABEL_CACHE = "boxeval.cache"

Note = Callable[[str], None]
Origin = ImageOrigin | PackagesOrigin


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


def ensure(engine: Engine, name: str, *, note: Note) -> ImageInfo:
    """Have the image `name` and say what it is. Builds boxeval's own if need be, pulls others.

    `note` gets one line for every slow step. Raises ImageError with the cause and the mend in one line.
    """
    if name in PARENTS:
        return _ensure_own(engine, name, note)
    if (found := _inspect(engine, name)) is None:
        if name.partition(":")[0].startswith("boxeval/"):
            raise ImageError(f"{name}: boxeval has no such image; it has {', '.join(FINAL)}")
        pull(engine, name, note)
        if (found := _inspect(engine, name)) is None:
            raise ImageError(f"{name}: the engine pulled it but does not have it; pull it by hand")
    _require_architecture(engine, name, found)
    return _info(name, name, found)


def build_all(engine: Engine, *, note: Note) -> tuple[ImageInfo, ...]:
    """Have every image that boxes run from, building independent ones side by side."""
    with ThreadPoolExecutor(len(FINAL)) as pool:
        return tuple(pool.map(partial(ensure, engine, note=note), FINAL))


def origins(engine: Engine, note: Note, environ: Mapping[str, str] = os.environ) -> tuple[Origin, ...]:
    """Where the root file system may come from, best first. `BOXEVAL_BASE_IMAGE` leaves no other choice."""
    if own := environ.get("BOXEVAL_BASE_IMAGE"):
        if "@sha256:" in own:
            return (ImageOrigin(own, own),)
        # A tag may move, so the recipe holds the image's id.
        return (ImageOrigin(own, ensure(engine, own, note=note).image_id),)
    return (ImageOrigin(DEBIAN_IMAGE, DEBIAN_IMAGE), packages_origin())


def _ensure_own(engine: Engine, name: str, note: Note) -> ImageInfo:
    choices = origins(engine, note)
    for origin in choices:
        recipe = load_recipe(name, str(origin))
        if found := _finished(engine, recipe):
            return found
    with _lock("origin"):
        origin = _choose(engine, choices, note)
    return _build(engine, load_recipe(name, str(origin)), origin, note)


def _choose(engine: Engine, choices: tuple[Origin, ...], note: Note) -> Origin:
    """The origin of a root file system that is here already, else the first that can be had."""
    for origin in choices:
        if _finished(engine, load_recipe(ROOTFS, str(origin))):
            return origin
    *images, last = choices
    for origin in images:
        if isinstance(origin, ImageOrigin):
            try:
                if _inspect(engine, origin.reference) is None:
                    pull(engine, origin.reference, note)
                return origin
            except ImageError as error:
                note("no registry can be reached" if isinstance(error, RegistryError) else str(error))
    return last


def _build(engine: Engine, recipe: Recipe, origin: Origin, note: Note) -> ImageInfo:
    for parent in recipe.parents:
        _build(engine, parent, origin, note)
    with _lock("prune", shared=True), _lock(recipe.tag):
        if found := _finished(engine, recipe):
            return found
        if recipe.name == ROOTFS and isinstance(origin, PackagesOrigin):
            import_packages(engine, recipe, origin.release, note)
        else:
            arguments = dict(recipe.arguments)
            if recipe.name == ROOTFS and isinstance(origin, ImageOrigin):
                arguments["ORIGIN"] = origin.reference
            note(f"building {recipe.tag}")
            network = "host" if recipe.name in NEEDS_NETWORK else "none"
            _run_build(engine, recipe.unfinished_tag, recipe.context(), arguments, {}, network)
        return _finish(engine, recipe)


def _finish(engine: Engine, recipe: Recipe) -> ImageInfo:
    """Read which packages the build resolved to, and give the image its labels and its final tag."""
    labels = {
        LABEL_IMAGE: recipe.name,
        LABEL_RECIPE: recipe.digest,
        LABEL_PACKAGES: hashlib.sha256(_read_file(engine, recipe.unfinished_tag, PACKAGES_FILE)).hexdigest(),
        LABEL_CACHE: "1",
    }
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as archive:
        dockerfile = f"FROM {recipe.unfinished_tag}\n".encode()
        member = tarfile.TarInfo("Dockerfile")
        member.size = len(dockerfile)
        archive.addfile(member, io.BytesIO(dockerfile))
    _run_build(engine, recipe.tag, context.getvalue(), {}, labels, "none")
    with engine_errors(f"untag {recipe.unfinished_tag}"):
        engine.api.remove_image(recipe.unfinished_tag)
    if not (found := _finished(engine, recipe)):
        raise ImageError(f"{recipe.tag}: built, but not there; run boxeval images build again")
    return found


def _run_build(
    engine: Engine, tag: str, context: bytes, arguments: dict[str, str], labels: dict[str, str], network: str
) -> None:
    said: list[str] = []
    with engine_errors(f"build {tag}"):
        messages: Iterator[dict[str, Any]] = engine.api.build(
            fileobj=io.BytesIO(context), custom_context=True, tag=tag, buildargs=arguments, labels=labels,
            network_mode=network, rm=True, forcerm=True, decode=True,
        )  # fmt: skip
        for message in messages:
            said.append(str(message.get("stream") or "").strip())
            if error := message.get("error"):
                last = " | ".join([line for line in said if line][-3:])
                raise ImageError(
                    f"build {tag}: {' '.join(str(error).split())[:300]}; it said last: {last[-400:]}"
                )


def _read_file(engine: Engine, image: str, path: str) -> bytes:
    """One file out of an image, through a container that is never started."""
    with engine_errors(f"read {path} of {image}"):
        container = engine.api.create_container(image, ["true"], labels={LABEL_CACHE: "1"})["Id"]
        try:
            stream, _ = engine.api.get_archive(container, path)
            data = b"".join(stream)
        finally:
            engine.api.remove_container(container, force=True)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        file = archive.extractfile(archive.getmembers()[0])
        return file.read() if file else b""


def _finished(engine: Engine, recipe: Recipe) -> ImageInfo | None:
    found = _inspect(engine, recipe.tag)
    if found is None or _labels(found).get(LABEL_RECIPE) != recipe.digest:
        return None
    return _info(recipe.name, recipe.tag, found)


def _inspect(engine: Engine, reference: str) -> dict[str, Any] | None:
    with engine_errors(f"inspect {reference}"):
        try:
            answer: dict[str, Any] = engine.api.inspect_image(reference)  # type: ignore[no-untyped-call]
        except (ImageNotFound, NotFound):
            return None
    return answer


def _labels(image: dict[str, Any]) -> dict[str, str]:
    return (image.get("Config") or {}).get("Labels") or {}


def _info(name: str, tag: str, image: dict[str, Any]) -> ImageInfo:
    environment = (image.get("Config") or {}).get("Env") or ()
    paths = [entry.removeprefix("PATH=") for entry in environment if entry.startswith("PATH=")]
    own = _labels(image) if name in PARENTS else {}
    return ImageInfo(
        name=name,
        tag=tag,
        image_id=image["Id"],
        recipe=own.get(LABEL_RECIPE),
        packages=own.get(LABEL_PACKAGES),
        path_env=paths[-1] if paths else PATH_ENV,
        size_bytes=image.get("Size", 0),
        volumes=tuple(sorted((image.get("Config") or {}).get("Volumes") or ())),
    )


_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""The kernel's words, which an engine uses for itself, in the words that images use."""


def _require_architecture(engine: Engine, name: str, image: dict[str, Any]) -> None:
    ours = _ARCHITECTURES.get(engine.facts.architecture, engine.facts.architecture)
    theirs = image.get("Architecture") or ours
    if theirs != ours:
        raise ImageError(f"{name}: made for {theirs}, this engine runs {ours}; name an image for {ours}")


@contextmanager
def _lock(name: str, *, shared: bool = False) -> Iterator[None]:
    """Hold a lock file against every other thread and process with the same cache directory."""
    path = load_settings().cache_dir / "locks" / (name.replace("/", "-").replace(":", "-") + ".lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w")
    except OSError as error:
        raise StorageError(
            f"{path}: {error.strerror}; set BOXEVAL_CACHE_DIR to a folder that can be written"
        ) from error
    with file:
        fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
