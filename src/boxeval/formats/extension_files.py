"""The files of an extension, read whole and under caps. Reading them again tells whether they have changed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

from boxeval.errors import FixtureError
from boxeval.formats.directory import read_directory
from boxeval.formats.faults import Fault, below, commands_faults
from boxeval.formats.fixtures import Fixture, fixture_of
from boxeval.formats.paths import inner_fault, normal
from boxeval.formats.place import show
from boxeval.spec.checks import AnyCheck, grader_name
from boxeval.spec.extension_use import COMMANDS, ExtensionUse
from boxeval.spec.metrics import did_you_mean
from boxeval.spec.trial import EntryKind

SOURCES_BYTES = 16 * 1024 * 1024
_PLACE = "extension"
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
File = tuple[bytes, int, bytes]
GRADERS = tuple(
    name for kind in get_args(AnyCheck) for name in get_args(kind.model_fields["grader"].annotation)
)


def extension_faults(use: ExtensionUse) -> Iterator[Fault]:
    """What is wrong with a declaration by itself."""
    yield from commands_faults("command", use.command)
    for index, path in enumerate(use.sources):
        if fault := inner_fault(path):
            yield ("sources", index), fault.replace("the workspace", "the suite's directory")
    yield from below("checks", _own_faults(use))
    yield from below("replaces", _replaced_faults(use))
    if use.trusted:
        yield ("trusted",), "is not to be had: every extension runs in a grader's box, without network"


def _own_faults(use: ExtensionUse) -> Iterator[Fault]:
    seen = list(use.expects)
    for index, check in enumerate(use.checks):
        if grader_name(check.grader) in GRADERS:
            yield (
                (index, "grader"),
                f"{show(check.grader)} is a built-in grader, so its check is no extension's",
            )
        if check.id in seen:
            yield (index, "id"), f"{show(check.id)} is there twice"
        seen.append(check.id)


def _replaced_faults(use: ExtensionUse) -> Iterator[Fault]:
    known = (*GRADERS, COMMANDS)
    for index, name in enumerate(use.replaces):
        if name not in known:
            yield (index,), f"{show(name)} is no built-in grader{did_you_mean(name, known)}"
        elif name in use.replaces[:index]:
            yield (index,), f"{show(name)} is there twice"


def rooted(
    command: Sequence[str], sources: Sequence[Path], base: Path
) -> tuple[Path, tuple[str, ...], tuple[str, ...]]:
    """The directory in which an extension begins that is given by paths of the host, its command and its sources.

    Words of the command are relative to `base`. Those that are a source, or lie below one, are then relative as the
    sources are; others stay.
    """
    absolute = [path.resolve() for path in sources]
    directory = Path(os.path.commonpath([path.parent for path in absolute])) if absolute else base

    def inside(word: str) -> str:
        place = (base / word).resolve()
        is_source = any(place == path or path in place.parents for path in absolute)
        return str(place.relative_to(directory)) if is_source else word

    return (
        directory,
        tuple(map(inside, command)),
        tuple(str(path.relative_to(directory)) for path in absolute),
    )


def read_extension(use: ExtensionUse, directory: Path) -> Fixture:
    """All files of an extension at their paths below `directory`; modes become 0644 or 0755.

    Raises `FixtureError` for what cannot be read, is no regular file or directory, or is too much.
    """
    wanted = dict.fromkeys(normal(path) for path in (*use.sources, *_named(use, directory)))
    outer = {path for path in wanted if not any(path.startswith(f"{other}/") for other in wanted)}
    files = (file for path in sorted(outer) for file in _read(directory, path))
    return fixture_of(_PLACE, files, SOURCES_BYTES)


def _named(use: ExtensionUse, directory: Path) -> Iterator[str]:
    """Words of the command that are paths of files: a script goes with the words that start it."""
    for word in use.command:
        if not inner_fault(word) and normal(word) and (directory / word).is_file():
            yield word


def _read(directory: Path, path: str) -> Iterator[File]:
    """A file, or every file of a directory."""
    place = directory / path
    if place.is_dir() and not place.is_symlink():
        tree = read_directory(place, (), SOURCES_BYTES, f"{_PLACE} {show(path)}")
        for entry in tree.entries():
            if entry.kind is EntryKind.SYMLINK:
                name = entry.path.decode("utf-8", "backslashreplace")
                raise FixtureError(
                    f"{_PLACE} {show(path)}: {show(name)} is a symlink; an extension has files only"
                )
            if entry.open is not None:
                with entry.open() as stream:
                    yield f"{path}/".encode() + entry.path, _mode(entry.mode), stream.read()
        return
    try:
        with os.fdopen(os.open(place, _OPEN), "rb") as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise FixtureError(f"{_PLACE} {show(path)}: is no regular file")
            yield path.encode(), _mode(status.st_mode), stream.read(SOURCES_BYTES + 1)
    except OSError as error:
        raise FixtureError(f"{_PLACE} {show(path)}: cannot be read: {error.strerror}") from None


def _mode(mode: int) -> int:
    return 0o755 if mode & 0o111 else 0o644
