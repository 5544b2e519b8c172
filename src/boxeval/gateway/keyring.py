"""Secrets of the operator: from a keyring file or the environment, and where each may go.

The file is JSON, `{NAME: {"value": KEY or "env": VARIABLE, "url": BASE_URL}}`. A key is sent nowhere but below its
URL, so that no suite can have it sent to a place of its own. A provider's own variable needs no entry.
Nothing here ever tells a value: not in an error, not in a `repr`.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boxeval.errors import UsageError
from boxeval.gateway.redact import SHORTEST, Redactor
from boxeval.rules.providers import PROVIDERS

MAX_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Secret:
    """A value, and the base URL that it may be sent to; None: nowhere."""

    value: str = field(repr=False)
    url: str | None = None


class Keyring:
    """Looks secrets up by name, and remembers which were used, for redaction."""

    def __init__(self, entries: Mapping[str, Secret], environ: Mapping[str, str]) -> None:
        self._entries, self._environ = entries, environ
        self._used: dict[str, Secret] = {}

    def get(self, name: str) -> Secret:
        """A secret. Raises `UsageError` if there is none, or one that could not be redacted."""
        secret = self._entries.get(name) or self._from_environment(name)
        if secret is None or not secret.value:
            raise UsageError(f"secret {name}: is neither in the keyring nor in the environment")
        if len(secret.value) < SHORTEST or not secret.value.isprintable() or not secret.value.isascii():
            raise UsageError(f"secret {name}: must be at least {SHORTEST} printable ASCII characters")
        self._used[name] = secret
        return secret

    def has(self, name: str) -> bool:
        """Whether there is such a secret."""
        return bool((found := self._entries.get(name) or self._from_environment(name)) and found.value)

    def key_for(self, name: str, base_url: str) -> Secret:
        """A secret that may be sent to `base_url`. Raises `UsageError`."""
        secret = self.get(name)
        if secret.url is None:
            raise UsageError(f"secret {name}: the keyring does not say to which URL it may be sent")
        if base_url != secret.url and not base_url.startswith(f"{secret.url}/"):
            raise UsageError(f"secret {name}: is for {secret.url}, not for {base_url}")
        return secret

    def redactor(self) -> Redactor:
        """Replaces every secret that was looked up."""
        return Redactor(secret.value for secret in self._used.values())

    def _from_environment(self, name: str) -> Secret | None:
        value = self._environ.get(name)
        if value is None:
            return None
        known = [provider.base_url for provider in PROVIDERS.values() if provider.key == name]
        return Secret(value, known[0] if known else None)


def read_keyring(path: Path | None, environ: Mapping[str, str]) -> Keyring:
    """The keyring of a file (None: of nothing), and of the environment. Raises `UsageError`."""
    if path is None:
        return Keyring({}, environ)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as stream:
            facts = os.fstat(stream.fileno())
            if not stat.S_ISREG(facts.st_mode):
                raise UsageError(f"keyring {path}: is no file")
            if facts.st_uid not in (os.geteuid(), 0) or stat.S_IMODE(facts.st_mode) & 0o077:
                raise UsageError(f"keyring {path}: others may read it; chmod 600 {path}")
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"keyring {path}: cannot be read: {error.strerror}") from None
    return Keyring(dict(_entries(path, data, environ)), environ)


def _entries(path: Path, data: bytes, environ: Mapping[str, str]) -> Iterable[tuple[str, Secret]]:
    if len(data) > MAX_BYTES:
        raise UsageError(f"keyring {path}: is larger than {MAX_BYTES} bytes")
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        raise UsageError(f"keyring {path}: is not JSON") from None  # the reason would show a part of it
    if not isinstance(tree, dict):
        raise UsageError(f"keyring {path}: must be an object of names")
    for name, entry in tree.items():
        yield name, _secret(f"keyring {path}: {name}", entry, environ)


def _secret(place: str, entry: Any, environ: Mapping[str, str]) -> Secret:
    if not isinstance(entry, dict) or not entry.keys() <= {"value", "env", "url"}:
        raise UsageError(f"{place}: must be an object of `value` or `env`, and `url`")
    if ("value" in entry) == ("env" in entry) or not all(isinstance(part, str) for part in entry.values()):
        raise UsageError(f"{place}: needs either `value` or `env`, as text")
    url = entry.get("url")
    return Secret(
        entry.get("value") or environ.get(entry.get("env", ""), ""), url.rstrip("/") if url else None
    )
