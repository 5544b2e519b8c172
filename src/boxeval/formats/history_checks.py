"""What Git may be told to write into a fixture: bounded, by names that every file system tells apart (G57)."""

from __future__ import annotations

from collections.abc import Iterator

from boxeval.formats.faults import Fault, below, files_faults
from boxeval.formats.paths import normal
from boxeval.formats.place import show
from boxeval.spec.workspace import InlineFile, Workspace, WorkspaceKind

MAX_FILES = 1024
MAX_BYTES = 32 * 1024 * 1024
"""Of paths, contents, messages and hooks together."""
MAX_PROGRAMS = 64
PROGRAMS_BYTES = 1024 * 1024
"""Of their names and texts together."""
MAX_MESSAGE_BYTES = 4096
HOOKS = frozenset(
    (
        *("applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit"),
        *("prepare-commit-msg", "commit-msg", "post-commit", "pre-rebase", "post-checkout", "post-merge"),
        *("pre-push", "reference-transaction", "push-to-checkout", "pre-auto-gc", "post-rewrite"),
        *("sendemail-validate", "fsmonitor-watchman", "post-index-change"),
    )
)
"""Those that Git runs in a work tree."""


def history_faults(workspace: Workspace) -> Iterator[Fault]:
    """Everything wrong with commits, files over them, what is staged, and hooks."""
    if workspace.kind is WorkspaceKind.GENERATED and workspace.commits is None:
        yield (), "kind `generated` needs `commits`"
    places: list[tuple[tuple[str | int, ...], dict[str, str | InlineFile]]] = []
    for index, commit in enumerate(workspace.commits or ()):
        if not commit.message.strip():
            yield ("commits", index, "message"), "is blank"
        if len(commit.message.encode()) > MAX_MESSAGE_BYTES:
            yield ("commits", index, "message"), f"has more than {MAX_MESSAGE_BYTES} bytes"
        places.append((("commits", index, "files"), commit.files))
    places.append((("files",), workspace.files or {}))
    for where, files in places:
        for path, message in (*files_faults(files), *_metadata_faults(files)):
            yield (*where, *path), message
    yield from _collisions(places)
    yield from _staging_faults(workspace)
    yield from below("hooks", _hook_faults(workspace.hooks))
    yield from below("bin", _program_faults(workspace.bin))
    count = sum(len(files) for _, files in places)
    if count > MAX_FILES:
        yield (), f"Git is to write {count} files; at most {MAX_FILES}"
    if (size := _size(workspace, places)) > MAX_BYTES:
        yield (), f"Git is to write {size} bytes; at most {MAX_BYTES}"


def _metadata_faults(files: dict[str, str | InlineFile]) -> Iterator[Fault]:
    for path in files:
        if any(part.casefold() == ".git" for part in path.split("/")):
            yield (path,), f"{show(path)} is Git's own; write hooks with `hooks`"


def _collisions(
    places: list[tuple[tuple[str | int, ...], dict[str, str | InlineFile]]],
) -> Iterator[Fault]:
    """Names that are one name where case is ignored, and files that are directories of others, in all commits."""
    seen: dict[str, str] = {}
    folders: dict[str, str] = {}
    for where, files in places:
        for path in files:
            name = normal(path)
            if (first := seen.setdefault(name.casefold(), name)) != name:
                yield (*where, path), f"{show(path)} is {show(first)} but for upper and lower case"
            parts = name.casefold().split("/")
            for depth in range(1, len(parts)):
                folders.setdefault("/".join(parts[:depth]), name)
    for where, files in places:
        for path in files:
            if inner := folders.get(normal(path).casefold()):
                yield (
                    (*where, path),
                    f"{show(path)} is a file, and {show(inner)} needs a directory of that name",
                )


def _staging_faults(workspace: Workspace) -> Iterator[Fault]:
    files = workspace.files or {}
    taken: set[str] = set()
    for index, path in enumerate(workspace.staged):
        if path not in files:
            yield ("staged", index), f"{show(path)} is not one of `files`"
        elif path.casefold() in taken:
            yield ("staged", index), f"{show(path)} is named twice"
        taken.add(path.casefold())
    if workspace.commit_files and not files:
        yield ("commitFiles",), "needs `files`"


def _hook_faults(hooks: dict[str, str]) -> Iterator[Fault]:
    for name in hooks:
        if name not in HOOKS:
            yield (name,), f"{show(name)} is not a hook that Git runs in a work tree"


def _program_faults(programs: dict[str, str]) -> Iterator[Fault]:
    if len(programs) > MAX_PROGRAMS:
        yield (), f"has {len(programs)} programs; at most {MAX_PROGRAMS}"
    size = sum(len(name.encode()) + len(text.encode()) for name, text in programs.items())
    if size > PROGRAMS_BYTES:
        yield (), f"has {size} bytes; at most {PROGRAMS_BYTES}"
    for name, text in programs.items():
        if "\0" in text:
            yield (name,), "has a NUL character"


def _size(
    workspace: Workspace, places: list[tuple[tuple[str | int, ...], dict[str, str | InlineFile]]]
) -> int:
    texts = [commit.message for commit in workspace.commits or ()]
    texts += [*workspace.staged, *workspace.hooks, *workspace.hooks.values()]
    for _, files in places:
        texts += files
        texts += [value.text if isinstance(value, InlineFile) else value for value in files.values()]
    return sum(len(text.encode()) for text in texts)
