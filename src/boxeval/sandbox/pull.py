"""Pull an image with a bounded wait, and say in one line why it cannot be had."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import requests
from docker import auth
from docker.errors import DockerException
from docker.utils import parse_repository_tag

from boxeval.errors import EngineError, ImageError
from boxeval.sandbox.engine import Engine

SILENCE_S = 30
"""How long an engine may say nothing while it pulls; it tells its progress several times a second."""

Note = Callable[[str], None]

# What engines and registries say, from their sources: distribution/errors.go of moby, and the registry's API.
_WRONG_ARCHITECTURE = re.compile(
    r"no matching manifest|no match for platform|does not match the (detected|specified)"
)
_NOT_FOUND = re.compile(
    r"manifest unknown|not found|does not exist|access denied|unauthorized|denied:|invalid reference"
    r"|no such image",
    re.I,
)
_UNREACHABLE = re.compile(
    r"dial tcp|no such host|timeout|timed out|refused|deadline exceeded|unreachable|x509|tls|EOF"
    r"|server misbehaving|reset by peer|toomanyrequests|too many requests"
    r"|5\d\d (internal|bad|service|gateway)|http response to https",
    re.I,
)

_unreachable: dict[tuple[str, str], str] = {}
_unreachable_lock = threading.Lock()


class RegistryError(ImageError):
    """The registry did not answer, or not in time; nothing is known of the image."""


def pull(engine: Engine, reference: str, note: Note) -> None:
    """Pull `reference`; ImageError says which of not found, unreachable or wrong architecture it is.

    A registry that could not be reached is asked once in the life of the process.
    """
    registry, _ = _parse(reference)
    with _unreachable_lock:
        known = _unreachable.get((engine.host, registry))
    if known:
        raise RegistryError(f"{reference}: {known}")
    note(f"pulling {reference}")
    try:
        for message in _progress(engine, reference, registry):
            if error := message.get("error"):
                raise _explain(reference, registry, str(error), engine.facts.architecture)
    except RegistryError as error:
        with _unreachable_lock:
            _unreachable[engine.host, registry] = str(error).removeprefix(f"{reference}: ")
        raise


def _parse(reference: str) -> tuple[str, str]:
    try:
        registry, remote = auth.resolve_repository_name(parse_repository_tag(reference)[0])
    except (DockerException, IndexError) as error:
        raise ImageError(f"{reference}: not an image name: {error}") from error
    return registry, remote


def _progress(engine: Engine, reference: str, registry: str) -> Iterator[dict[str, Any]]:
    """The engine's progress messages. Asked by hand since the SDK's own pull waits without a limit."""
    repository, tag = parse_repository_tag(reference)
    header = auth.get_config_header(engine.api, registry)
    try:
        with engine.api.post(
            f"{engine.api.base_url}/v{engine.api.api_version}/images/create",
            params={"fromImage": repository, "tag": tag or "latest"},
            headers={"X-Registry-Auth": header} if header else {},
            stream=True,
            timeout=(10, SILENCE_S),
        ) as response:
            if response.status_code >= 400:
                raise _explain(reference, registry, _error_of(response), engine.facts.architecture)
            for line in response.iter_lines():
                if line.strip():
                    yield json.loads(line)
    except requests.exceptions.RequestException as error:
        # In the middle of a stream a timeout comes as a ConnectionError.
        if "timed out" not in str(error).lower():
            raise EngineError(f"pull {reference}: the engine hung up: {error}") from error
        raise RegistryError(
            f"{reference}: the registry {registry} gave no answer in {SILENCE_S} s: {_MEND_UNREACHABLE}"
        ) from error


def _error_of(response: requests.Response) -> str:
    try:
        return str(response.json()["message"])
    except (ValueError, KeyError, TypeError):
        return response.text or f"status {response.status_code}"


_MEND_UNREACHABLE = "load the image here (docker load), or name one that is here, such as boxeval/base"


def _explain(reference: str, registry: str, said: str, architecture: str) -> ImageError:
    said = " ".join(said.split())[:300]
    if _WRONG_ARCHITECTURE.search(said):
        return ImageError(
            f"{reference}: not made for this engine's architecture ({architecture}); name an image that is. "
            f"The engine said: {said}"
        )
    if _UNREACHABLE.search(said):
        return RegistryError(
            f"{reference}: the registry {registry} cannot be reached: {_MEND_UNREACHABLE}. "
            f"The engine said: {said}"
        )
    if _NOT_FOUND.search(said):
        return ImageError(
            f"{reference}: no such image here or in {registry}; correct the name, build it, or log in. "
            f"The engine said: {said}"
        )
    return ImageError(f"{reference}: cannot be pulled from {registry}. The engine said: {said}")
