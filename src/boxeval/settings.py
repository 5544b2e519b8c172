"""Where boxeval keeps things, and every environment variable that it reads (docs/environment-variables.md)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from boxeval.errors import UsageError

PACKAGE = Path(__file__).parent
ENGINE_TIMEOUT_S = 120
"""Starts can take a minute under load; longer than this is the engine's fault (docs/engine-notes.md)."""


def resource(kind: str) -> Path:
    """Folder of shipped files: `images`, `policies` or `suites`; in a wheel they are package data."""
    packaged = PACKAGE / "data" / kind
    return packaged if packaged.is_dir() else PACKAGE.parent.parent / kind


def socket_parent() -> str | None:
    """Where to make a directory for a socket: its path holds at most 107 bytes, so a deep TMPDIR is passed over."""
    return None if len(tempfile.gettempdir()) < 60 else "/tmp"  # noqa: S108


@dataclass(frozen=True, slots=True)
class Settings:
    """Directories and defaults of one process. Built once from the environment, never changed."""

    data_dir: Path
    cache_dir: Path
    key_file: Path | None
    jobs: int | None
    hermetic: bool
    engine_timeout_s: int = ENGINE_TIMEOUT_S
    keyring_file: Path | None = None

    @property
    def runs_dir(self) -> Path:
        """Default parent of run directories."""
        return self.data_dir / "runs"

    @property
    def keys_dir(self) -> Path:
        """Signing keys of this machine, and the public keys it trusts."""
        return self.data_dir / "keys"


def load_settings(environ: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings.

    A role's own variable beats `BOXEVAL_HOME`, which beats the XDG directories (S46).
    """
    home = environ.get("BOXEVAL_HOME")

    def directory(variable: str, role: str, default: str) -> Path:
        if own := environ.get(variable):
            return Path(own).absolute()
        return Path(home).absolute() / role if home else Path(default)

    key_file = environ.get("BOXEVAL_KEY_FILE")
    keyring_file = environ.get("BOXEVAL_KEYRING")
    hermetic = environ.get("BOXEVAL_HERMETIC", "1")
    if hermetic not in {"0", "1"}:
        raise UsageError(f"BOXEVAL_HERMETIC: must be 0 or 1, not {hermetic!r}")
    return Settings(
        data_dir=directory("BOXEVAL_DATA_DIR", "data", platformdirs.user_data_dir("boxeval")),
        cache_dir=directory("BOXEVAL_CACHE_DIR", "cache", platformdirs.user_cache_dir("boxeval")),
        key_file=Path(key_file) if key_file else None,
        jobs=_positive(environ, "BOXEVAL_JOBS"),
        hermetic=hermetic == "1",
        engine_timeout_s=_positive(environ, "BOXEVAL_ENGINE_TIMEOUT_S") or ENGINE_TIMEOUT_S,
        keyring_file=Path(keyring_file) if keyring_file else None,
    )


def _positive(environ: Mapping[str, str], name: str) -> int | None:
    value = environ.get(name)
    if value is None:
        return None
    if not value.isascii() or not value.isdigit() or int(value) < 1:
        raise UsageError(f"{name}: must be a positive whole number, not {value!r}")
    return int(value)
