"""Where a workspace's files come from, read and checked without running or making anything on the host."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rfc8785

from boxeval.errors import FixtureError
from boxeval.formats.archive import read_archive
from boxeval.formats.directory import read_directory
from boxeval.formats.git_refs import elsewhere, git_directory, resolve
from boxeval.formats.paths import normal
from boxeval.formats.place import show
from boxeval.formats.tree_index import Fixture, Item, TreeIndex, entry
from boxeval.spec.tree import FixtureEntry
from boxeval.spec.trial import EntryKind
from boxeval.spec.workspace import InlineFile, Workspace, WorkspaceKind

__all__ = [
    "Fixture",
    "GitSource",
    "fixture_of",
    "fixture_recipe",
    "git_source",
    "inline_fixture",
    "read_fixture",
]


@dataclass(frozen=True, slots=True)
class GitSource:
    """A repository to clone in a box: a local directory or a URL, at a commit or at the name of a ref.

    A local repository always has `commit`: what the ref was when it was read. A URL with `checkout` has none.
    """

    location: Path | None
    url: str | None
    commit: str | None
    checkout: str | None

    @property
    def needs_network(self) -> bool:
        """Whether the box that fetches it must reach another host."""
        return self.url is not None and not self.url.startswith("file:")


def read_fixture(workspace: Workspace, directory: Path) -> Fixture:
    """The files of an inline, temp-copy, local or archive workspace; `directory` is the suite file's.

    Raises `FixtureError` with one line that names the place and the entry.
    """
    if workspace.kind is WorkspaceKind.INLINE:
        return inline_fixture(workspace.files or {}, workspace.size_limit)
    if workspace.kind is WorkspaceKind.GENERATED:
        return inline_fixture({}, workspace.size_limit)  # Git writes all of it, in a box
    place = f"workspace {show(workspace.path or '')}"
    path = _existing(workspace, directory, place)
    if workspace.kind is WorkspaceKind.ARCHIVE:
        if not path.is_file():
            raise FixtureError(f"{place}: is not a file; kind `archive` takes a tar archive")
        return read_archive(path, workspace.excludes, workspace.size_limit, place)
    if workspace.kind is WorkspaceKind.GIT:
        raise FixtureError(f"{place}: kind `git` is cloned in a box, not read here")
    return read_directory(path, workspace.excludes, workspace.size_limit, place)


def inline_fixture(files: dict[str, str | InlineFile], size_limit: int) -> Fixture:
    """Files that a suite holds itself (`workspace.files`, `verify.files`); folders are implied."""
    given = {name: InlineFile(text=file) if isinstance(file, str) else file for name, file in files.items()}
    contents = (
        (normal(name).encode(), int(file.mode, 8), file.text.encode()) for name, file in given.items()
    )
    return fixture_of("workspace.files", contents, size_limit)


def fixture_of(place: str, files: Iterable[tuple[bytes, int, bytes]], size_limit: int) -> Fixture:
    """Path, mode and content of each file; folders are implied. `place` begins every message."""
    index = TreeIndex(place, size_limit)
    contents: dict[bytes, bytes] = {}
    for path, mode, content in files:
        index.count(len(content))
        index.add(Item(path, EntryKind.FILE, mode, len(content), sha256=hashlib.sha256(content).hexdigest()))
        contents[path] = content
    index.add_parents()

    def entries() -> Iterator[FixtureEntry]:
        return (entry(item, lambda item: io.BytesIO(contents[item.path])) for item in index.sorted())

    return Fixture(index.digest(), entries, index.size_bytes, len(index.items))


def git_source(workspace: Workspace, directory: Path) -> GitSource:
    """Checks and describes a workspace of kind git. Raises `FixtureError`."""
    if workspace.url is not None:
        return GitSource(None, workspace.url, workspace.commit, workspace.checkout)
    place = f"workspace {show(workspace.path or '')}"
    path = _existing(workspace, directory, place)
    if fault := elsewhere(path):
        raise FixtureError(f"{place}: {fault}")
    repository = git_directory(path)
    if repository is None:
        raise FixtureError(f"{place}: is not a git repository")
    name = workspace.checkout or "HEAD"
    commit = workspace.commit or resolve(repository, name)
    if commit is None:
        raise FixtureError(f"{place}: no branch or tag {show(name)} can be read there; give `commit`")
    return GitSource(path, None, commit, workspace.checkout)


def fixture_recipe(workspace: Workspace, source: Fixture | GitSource, image: str) -> str:
    """SHA-256 (hex) over what makes the fixture: its files or commit, and set-up commands with their image.

    What Git writes over them counts as declared. Holds no path of the host, so the same fixture has the same
    recipe on every machine.
    """
    made: dict[str, Any] = {"format": "boxeval.fixture/1", "kind": str(workspace.kind)}
    if isinstance(source, Fixture):
        made["tree"] = source.digest
    else:
        made["git"] = (
            {"commit": source.commit} if source.commit else {"url": source.url, "checkout": source.checkout}
        )
    if workspace.history == "none":
        made["history"] = "none"
    if written := workspace.written:
        made["written"] = written
    if workspace.setup:
        made["setup"] = {"commands": list(workspace.setup), "image": image}
    return hashlib.sha256(rfc8785.dumps(made)).hexdigest()


def _existing(workspace: Workspace, directory: Path, place: str) -> Path:
    path = directory / (workspace.path or "")
    try:
        if path.exists():
            return path
    except (OSError, ValueError) as error:
        raise FixtureError(f"{place}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    raise FixtureError(f"{place}: does not exist in {show(str(directory))}")
