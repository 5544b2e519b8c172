"""One trial's changes as a patch, section by section while they are read back. Nothing of Git runs."""

from __future__ import annotations

from collections.abc import Iterable

from boxeval.receipts.blobs import BlobStore
from boxeval.rules.line_diff import Work
from boxeval.rules.patch import FILE, LINK, PROGRAM, Blob, TooLarge, is_refused, section
from boxeval.rules.paths import is_git_internal, readable
from boxeval.sandbox.changes import OldContent, Told
from boxeval.sandbox.keeper_frames import RawChange, Side
from boxeval.spec.trial import EntryKind, Patch

PATCH_BYTES = 32 * 1024 * 1024
OLD_CONTENT = OldContent(file_bytes=PATCH_BYTES, all_bytes=256 * 1024 * 1024)
_EXAMPLE = 120
_IN_PATCH = (EntryKind.FILE, EntryKind.SYMLINK, EntryKind.DIRECTORY)


class PatchWriter:
    """Takes every change once, in the order of the keeper (a directory before what is in it), then finishes."""

    def __init__(self, limit: int = PATCH_BYTES, work: Work | None = None) -> None:
        self._room, self._work = limit, work or Work()
        self._sections: list[tuple[bytes, bytes]] = []
        self._left_out: dict[str, list[bytes]] = {}
        self._empty: set[bytes] = set()
        self._unavailable: str | None = None

    def add(self, told: Told, content: bytes | None) -> None:
        """`content` is of a regular file; None if it is more than a patch may hold."""
        change, path = told.change, told.change.path
        if is_git_internal(path):
            above = path[: (b"/" + path + b"/").index(b"/.git/")].rstrip(b"/")
            self._leave_out("repository" if above else "history", above or path)
            return
        self._note_directory(change)
        if change.new and change.new.kind not in _IN_PATCH:
            self._leave_out("special", path)
        links = EntryKind.SYMLINK in {side.kind for side in (change.new, change.old) if side}
        if is_refused(path, links):
            self._leave_out("name", path)
            return
        if self._unavailable is None:
            self._write(told, content)

    def _write(self, told: Told, content: bytes | None) -> None:
        path, old, new = told.change.path, told.change.old, told.change.new
        before = told.old
        if old and told.sha256 and old.sha256 == told.sha256:
            before = content = b""  # the mode alone is another, which a patch says without content
        try:
            text = section(path, _blob(old, before), _blob(new, content), self._work, self._room)
        except TooLarge:
            self._unavailable = f"the patch, or what it is made of, is too large, at: {_shown(path)}"
            self._sections.clear()
            return
        self._room -= len(text)
        self._sections.append((path, text))

    def _note_directory(self, change: RawChange) -> None:
        """Git has no empty directories: remember those that were made, until something is in them."""
        if change.new is None:
            return
        if change.new.kind is EntryKind.DIRECTORY:
            if change.old is None or change.old.kind is not EntryKind.DIRECTORY:
                self._empty.add(change.path)
            return
        parent = change.path.rpartition(b"/")[0]
        while parent in self._empty:
            self._empty.discard(parent)
            parent = parent.rpartition(b"/")[0]

    def _leave_out(self, why: str, path: bytes) -> None:
        self._left_out.setdefault(why, []).append(path)

    def finish(self, blobs: BlobStore, repositories: Iterable[bytes] = ()) -> Patch:
        """Keep the patch. `repositories` are changed directories that have a repository of their own."""
        for path in repositories:
            if not is_git_internal(path):
                self._leave_out("repository", path)
        for path in sorted(self._empty):
            self._leave_out("directory", path)
        reasons = tuple(
            text.format(_some(self._left_out[why])) for why, text in _REASONS.items() if why in self._left_out
        )
        if self._unavailable:
            return Patch(sha256=None, complete=False, reasons=(self._unavailable, *reasons))
        sections = [text for _, text in sorted(self._sections)]
        sha256, size = blobs.put_stream(sections)
        return Patch(
            sha256=sha256, size_bytes=size, complete=self._left_out.keys() <= {"history"}, reasons=reasons
        )


_REASONS = {
    "history": "what changed in the repository itself is no part of a patch: {}",
    "repository": "a nested repository changed; of it the patch has the files alone: {}",
    "special": "neither a file nor a link: {}",
    "name": "a name that Git refuses: {}",
    "directory": "an empty directory, which Git does not have: {}",
}


def _some(paths: list[bytes]) -> str:
    unlike = list(dict.fromkeys(paths))
    more = f" and {len(unlike) - 1} more" if len(unlike) > 1 else ""
    return _shown(unlike[0]) + more


def _shown(path: bytes) -> str:
    return readable(path[:_EXAMPLE])


def _blob(side: Side | None, data: bytes | None) -> Blob | None:
    if side is None or side.kind not in (EntryKind.FILE, EntryKind.SYMLINK):
        return None
    if side.kind is EntryKind.SYMLINK:
        return Blob(LINK, side.link or b"")
    if data is None:
        raise TooLarge
    return Blob(PROGRAM if side.mode & 0o100 else FILE, data)
