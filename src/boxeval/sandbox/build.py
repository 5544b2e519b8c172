"""Build one of boxeval's images, once per recipe even if several threads and processes ask at the same time.

A lock file per tag lets one of them build while the rest wait and then find it. Until its last step an image
has a draft's name, so what can be found under a final tag is whole.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import re
import secrets
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from typing import IO, Any

from boxeval.errors import EngineError, ImageError, StorageError
from boxeval.sandbox.engine import Engine, engine_errors
from boxeval.sandbox.image_info import (
    LABEL_CACHE,
    LABEL_IMAGE,
    LABEL_PACKAGES,
    LABEL_RECIPE,
    ImageInfo,
    architecture_of,
    finished,
    inspect,
)
from boxeval.sandbox.recipes import NEEDS_NETWORK, ROOTFS, Recipe, RecipeFile, pack
from boxeval.sandbox.registry_packages import LISTED, fetch, listed, needs_python, wants_packages
from boxeval.sandbox.rootfs import ImageOrigin, Origin, PackagesOrigin, import_packages
from boxeval.settings import load_settings

PACKAGES_FILE = "/usr/share/boxeval/packages.txt"
"""Sorted lines `package=version`, in every image."""

DRAFT = "draft-"
"""What the version of an image starts with until it is finished."""

Note = Callable[[str], None]


def build(engine: Engine, recipe: Recipe, origin: Origin, note: Note) -> ImageInfo:
    """Have the image of `recipe`, and before it those that it builds upon."""
    for parent in recipe.parents:
        build(engine, parent, origin, note)
    with lock("prune", shared=True), lock(recipe.tag):
        if found := finished(engine, recipe):
            return found
        draft = f"{recipe.name}:{DRAFT}{secrets.token_hex(8)}"
        try:
            _make(engine, recipe, origin, draft, note)
            _finish(engine, recipe, draft)
        finally:
            with suppress(EngineError), engine_errors(f"untag {draft}"):
                engine.api.remove_image(draft)
        if not (found := finished(engine, recipe)):
            raise ImageError(f"{recipe.tag}: built, but not there; run boxeval images build again")
        return found


def _make(engine: Engine, recipe: Recipe, origin: Origin, draft: str, note: Note) -> None:
    if recipe.name == ROOTFS and isinstance(origin, PackagesOrigin):
        import_packages(engine, recipe, origin.release, draft, note)
        return
    note(f"building {recipe.tag}")
    arguments = dict(recipe.arguments)
    if isinstance(origin, ImageOrigin):
        arguments["ORIGIN"] = origin.reference
    # The host's network, so that it works where the engine's bridge has no way out.
    network = "host" if recipe.name in NEEDS_NETWORK else "none"
    with tempfile.TemporaryFile() as context:
        if wants_packages(recipe):
            _pack_agent(engine, recipe, context, note)
        else:
            pack(recipe.files, context)
        context.seek(0)
        _run_build(engine, draft, context, arguments, {}, network)


def _pack_agent(engine: Engine, recipe: Recipe, context: IO[bytes], note: Note) -> None:
    """The build context of an agent's image: its recipe, and what its packages hold."""
    architecture = architecture_of(engine)
    python = None
    if needs_python(recipe):
        installed = _read_file(engine, recipe.parents[0].tag, PACKAGES_FILE).decode()
        found = re.search(r"^python(3\.[0-9]+)(?:-minimal)?=", installed, re.MULTILINE)
        if found is None:
            raise ImageError(f"{recipe.parents[0].tag}: its list of packages has no Python")
        python = found[1]
    note(f"fetching the packages of {recipe.name} with this machine's own clients, where they are not cached")
    fetched = fetch(recipe, architecture, python, load_settings().cache_dir / "packages")
    own = RecipeFile(LISTED, listed(recipe, architecture))
    pack(chain(recipe.files, (own,), fetched), context)


@contextmanager
def lock(name: str, *, shared: bool = False) -> Iterator[None]:
    """Hold a lock file against every other thread and process with the same cache directory."""
    path = load_settings().cache_dir / "locks" / (name.replace("/", "-").replace(":", "-") + ".lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w")
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}; set BOXEVAL_CACHE_DIR to a writable folder") from error
    with file:
        fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield


def _finish(engine: Engine, recipe: Recipe, draft: str) -> None:
    """Read which packages the build resolved to, and give the image its labels and its final tag."""
    packages = _read_file(engine, draft, PACKAGES_FILE)
    labels = {
        LABEL_IMAGE: recipe.name,
        LABEL_RECIPE: recipe.digest,
        LABEL_PACKAGES: hashlib.sha256(packages).hexdigest(),
        LABEL_CACHE: "1",
    }
    context = io.BytesIO()
    pack((RecipeFile("Dockerfile", f"FROM {draft}\n".encode()),), context)
    context.seek(0)
    image = _run_build(engine, "", context, {}, labels, "none")
    with engine_errors(f"name {recipe.tag}"):
        # A user with other locks may have been faster, and then our image is one too many.
        if finished(engine, recipe):
            engine.api.remove_image(image)
        else:
            engine.api.tag(image, recipe.name, recipe.tag.rpartition(":")[2])


def _run_build(
    engine: Engine,
    tag: str,
    context: IO[bytes],
    arguments: dict[str, str],
    labels: dict[str, str],
    network: str,
) -> str:
    """Build and return the image's id. Without a tag the image gets none."""
    said: list[str] = []
    image, error = "", ""
    with engine_errors(f"build {tag}"):
        messages: Iterator[dict[str, Any]] = engine.api.build(
            fileobj=context,
            custom_context=True,
            tag=tag or None,
            buildargs=arguments,
            labels=labels,
            network_mode=network,
            rm=True,
            forcerm=True,
            decode=True,
        )
        for message in messages:
            said.append(str(message.get("stream") or "").strip())
            image = (message.get("aux") or {}).get("ID", image)
            error = message.get("error", error)
    if error:
        _drop_last_step(engine, said)
        last = " | ".join([line for line in said if line][-3:])[-400:]
        raise ImageError(f"build {tag}: {' '.join(error.split())[:300]}; before that: {last}")
    return image


def _drop_last_step(engine: Engine, said: list[str]) -> None:
    """Remove what the steps before the one that failed made: an image without a name, which nobody would find."""
    steps = [line.removeprefix("---> ") for line in said if re.fullmatch(r"---> [0-9a-f]{12}", line)]
    image = inspect(engine, steps[-1]) if steps else None
    if image and not image.get("RepoTags") and not image.get("RepoDigests"):
        with suppress(EngineError), engine_errors("remove an unfinished image"):
            engine.api.remove_image(image["Id"])


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
