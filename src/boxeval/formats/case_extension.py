"""The extension that supplies the cases of a run: its command file, its sources and its configuration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from boxeval.errors import UsageError
from boxeval.formats.extension_files import extension_faults, rooted
from boxeval.formats.place import dotted
from boxeval.receipts.canonical import MalformedError, strict_json
from boxeval.receipts.storage import read_regular
from boxeval.spec.extension import MESSAGE_BYTES, JsonObject
from boxeval.spec.extension_use import ExtensionUse

COMMAND_BYTES = 64 * 1024


def load_use(
    command_file: Path,
    sources: Sequence[Path],
    configuration_file: Path | None,
    verdict_policy: str | None,
    replaces: Sequence[str],
) -> tuple[ExtensionUse, Path]:
    """The extension as a task would declare it, and the directory in which its paths begin. Raises `UsageError`."""
    named = f"--extension-command-file {command_file}"
    command = _json(command_file, named, COMMAND_BYTES)
    if not isinstance(command, list) or not all(isinstance(word, str) for word in command):
        raise UsageError(f"{named}: is not a JSON array of texts, program first")
    directory, words, inner = rooted(command, sources, command_file.absolute().parent)
    try:
        use = ExtensionUse(
            command=words,
            sources=inner,
            configuration=load_configuration(configuration_file, "--extension-configuration-file"),
            verdict_policy=verdict_policy,
            replaces=tuple(replaces),
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise UsageError(f"{named}: {dotted(first['loc'])}: {first['msg']}") from None
    for place, fault in extension_faults(use):
        raise UsageError(f"{named}: {dotted(place)}: {fault}")
    return use, directory


def load_configuration(file: Path | None, flag: str) -> JsonObject:
    """The JSON object that a flag names; empty without one. Raises `UsageError`."""
    tree = {} if file is None else _json(file, f"{flag} {file}", MESSAGE_BYTES)
    if not isinstance(tree, dict):
        raise UsageError(f"{flag} {file}: is not a JSON object")
    return {**tree}


def _json(file: Path, named: str, limit: int) -> object:
    try:
        return strict_json(read_regular(file, limit))
    except OSError as error:
        raise UsageError(f"{named}: cannot be read: {error.strerror or error}") from None
    except MalformedError as error:
        raise UsageError(f"{named}: {error}") from None
