"""`writes` and `protect` of a task: what they may say, and whether they fit the fixture (contract S36, D15)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from boxeval.formats.paths import inner_fault, normal
from boxeval.formats.patterns import matcher, unmatched
from boxeval.formats.place import Path, show
from boxeval.spec.plan import PlannedStep, PlannedTask
from boxeval.spec.suite import Step, Task
from boxeval.spec.trial import EntryKind

_GLOB = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Boundaries:
    """Every list of `writes` by its place in the task, and `protect`."""

    writes: tuple[tuple[Path, tuple[str, ...]], ...]
    protect: tuple[str, ...]

    @classmethod
    def of(cls, task: Task | PlannedTask) -> Boundaries:
        """Those of a task and of its steps."""
        steps: tuple[Step | PlannedStep, ...] = task.steps
        lists: list[tuple[Path, tuple[str, ...] | None]] = [(("writes",), task.writes)]
        lists += [(("steps", number, "writes"), step.writes) for number, step in enumerate(steps)]
        return cls(tuple((place, writes) for place, writes in lists if writes), task.protect)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to compare with a fixture."""
        return not self.writes and not self.protect


def writes_faults(writes: Sequence[str]) -> Iterator[tuple[Path, str]]:
    """Entries that name nothing, or name it in a way that `writes` does not have."""
    seen: dict[str, str] = {}
    for number, entry in enumerate(writes):
        if fault := _entry_fault(entry):
            yield (number,), fault
        elif (same := seen.setdefault(normal(entry), entry)) != entry or entry in writes[:number]:
            yield (number,), f"{show(entry)} is the same place as {show(same)}"


def _entry_fault(entry: str) -> str | None:
    if fault := inner_fault(entry):
        return fault
    if _GLOB.intersection(entry):
        return f"{show(entry)} is a glob; name files, or directories with `/` at the end"
    if "\\" in entry or not entry.isprintable() or entry != entry.strip():
        return f"{show(entry)} has a backslash, a space at an end or a character that cannot be shown"
    if not normal(entry) and not entry.endswith("/"):
        return f"{show(entry)} is the workspace itself; write `./` for all in it but `.git`"
    return None


def fixture_faults(bounds: Boundaries, entries: Mapping[str, EntryKind]) -> Iterator[tuple[Path, str]]:
    """What does not fit a fixture of these entries: protected names that are not there, links, wrong kinds."""
    names = list(_names(entries)) if bounds.protect else []
    idle = unmatched(bounds.protect, names)
    for number, pattern in enumerate(bounds.protect):
        if pattern in idle:
            yield ("protect", number), f"{show(pattern)} matches nothing in the workspace"
    for place, writes in bounds.writes:
        for number, entry in enumerate(writes):
            if fault := _kind_fault(entry, entries):
                yield (*place, number), fault


def named(entries: Mapping[str, EntryKind], patterns: Sequence[str]) -> list[str]:
    """The entries that a gitignore-style pattern names, as patterns see them."""
    return [name.replace("\0", "\n") for name in matcher(patterns).match_files(_names(entries))]


def _names(entries: Mapping[str, EntryKind]) -> Iterator[str]:
    """As patterns see them: a directory ends in `/`, and a link counts as both."""
    for path, kind in entries.items():
        plain = path.replace("\n", "\0")
        if kind is not EntryKind.DIRECTORY:
            yield plain
        if kind in (EntryKind.DIRECTORY, EntryKind.SYMLINK):
            yield f"{plain}/"


def _kind_fault(entry: str, entries: Mapping[str, EntryKind]) -> str | None:
    parts = normal(entry).split("/")
    for depth in range(1, len(parts) + 1):
        path = "/".join(parts[:depth])
        kind = entries.get(path)
        if kind is EntryKind.SYMLINK:
            return f"{show(entry)} goes through the link {show(path)}; name the place that it leads to"
        if kind is EntryKind.FILE and (depth < len(parts) or entry.endswith("/")):
            return f"{show(path)} is a file" + ("; write it without `/`" if depth == len(parts) else "")
        if kind is EntryKind.DIRECTORY and depth == len(parts) and not entry.endswith("/"):
            return f"{show(entry)} is a directory; write `{path}/` for all in it"
    return None


def inline_entries(files: Iterable[str]) -> dict[str, EntryKind]:
    """The entries of a fixture that a suite holds itself, with the directories that its paths imply."""
    entries: dict[str, EntryKind] = {}
    for name in files:
        parts = normal(name).split("/")
        entries |= {"/".join(parts[:depth]): EntryKind.DIRECTORY for depth in range(1, len(parts))}
        entries["/".join(parts)] = EntryKind.FILE
    return entries
