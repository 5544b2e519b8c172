"""The run settings file, and the selections of a case run: a flag beats the file (contract G76)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import rfc8785

from boxeval.formats.host_files import read_record
from boxeval.spec.run_settings import RunSettings

MAX_BYTES = 64 * 1024
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The values of a file and their digest; an empty one without a file."""

    values: RunSettings = field(default_factory=RunSettings)
    digest: str | None = None

    def choose(self, flag: T | None, name: str, default: T | None = None) -> T | None:
        """The flag's value, else the file's, else the default."""
        if flag is not None:
            return flag
        value: T | None = getattr(self.values, name)
        return default if value is None else value


def load_settings_file(path: Path | None) -> LoadedSettings:
    """Read the file, if one is named. Raises `SuiteError`."""
    if path is None:
        return LoadedSettings()
    values, _ = read_record(path, "run settings file", MAX_BYTES, RunSettings)
    content = values.model_dump(mode="json", exclude={"format"})
    return LoadedSettings(values, hashlib.sha256(rfc8785.dumps(content)).hexdigest())
