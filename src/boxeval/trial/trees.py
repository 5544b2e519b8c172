"""Small trees of files on their way into a layer or a home."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from functools import partial

from boxeval.spec.tree import FixtureEntry
from boxeval.spec.trial import EntryKind


def file_entry(path: bytes, content: bytes, mode: int = 0o444) -> FixtureEntry:
    """A file with its content in memory."""
    return FixtureEntry(path, EntryKind.FILE, mode, len(content), open=partial(io.BytesIO, content))


def files_tree(files: Mapping[str, bytes]) -> list[FixtureEntry]:
    """Files that their owner may change, with the directories above them, parents first."""
    return with_directories(file_entry(path.encode(), content, 0o644) for path, content in files.items())


def with_directories(files: Iterable[FixtureEntry]) -> list[FixtureEntry]:
    """The files and every directory above one of them, sorted by path, parents first."""
    entries = list(files)
    above = {file.path[:at] for file in entries for at, byte in enumerate(file.path) if byte == ord("/")}
    entries += [FixtureEntry(path, EntryKind.DIRECTORY, 0o755) for path in above]
    return sorted(entries, key=lambda entry: entry.path)
