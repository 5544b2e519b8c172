"""The project that a case run is about, as one digest over its files."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from boxeval.errors import UsageError
from boxeval.formats.git_refs import git_directory, resolve

MAX_ENTRIES = 200_000
MAX_BYTES = 4 * 1024 * 1024 * 1024
_CHUNK = 1 << 20


def project_digest(root: Path, without: tuple[Path, ...] = ()) -> str:
    """SHA-256 (hex) over the commit, if it is a repository, and over kinds, names and contents of all files.

    `.git` and what is below `without` are left out; links are not followed. Raises `UsageError`.
    """
    if not root.is_dir():
        raise UsageError(f"--project-root {root}: is not a directory")
    total = hashlib.sha256()
    repository = git_directory(root)
    total.update(f"commit {resolve(repository, 'HEAD') if repository else None}\n".encode())
    count, size = 0, 0
    skipped = {os.path.realpath(place) for place in without}
    try:
        for path, status in _entries(os.path.realpath(root), skipped):
            count, size = count + 1, size + status.st_size * stat.S_ISREG(status.st_mode)
            if count > MAX_ENTRIES or size > MAX_BYTES:
                raise UsageError(
                    f"--project-root {root}: holds more than {MAX_ENTRIES} entries or {MAX_BYTES >> 30} GiB; "
                    "name a smaller directory"
                )
            name = os.fsencode(os.path.relpath(path, root))
            about = b"%o\0" % (stat.S_IFMT(status.st_mode) | status.st_mode & 0o111)
            total.update(about + name + b"\0" + _content(path, status) + b"\n")
    except OSError as error:
        raise UsageError(
            f"--project-root {root}: {error.filename}: cannot be read: {error.strerror}"
        ) from None
    return total.hexdigest()


def _entries(directory: str, skipped: set[str]) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(directory) as found:
        entries = sorted(found, key=lambda entry: os.fsencode(entry.name))
    for entry in entries:
        if entry.name == ".git" or entry.path in skipped:
            continue
        status = entry.stat(follow_symlinks=False)
        yield entry.path, status
        if stat.S_ISDIR(status.st_mode):
            yield from _entries(entry.path, skipped)


def _content(path: str, status: os.stat_result) -> bytes:
    if stat.S_ISLNK(status.st_mode):
        return os.fsencode(Path(path).readlink())
    if not stat.S_ISREG(status.st_mode):
        return b""
    digest = hashlib.sha256()
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest().encode()
