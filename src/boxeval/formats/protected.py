"""Directories of the host that no box may see: checked before a run, against all that a box is shown (G31-G34).

Boxes see nothing of the host but what their policy mounts and what a fixture copies. So a protected root is kept out
by refusing mounts and fixture sources that overlap with it. The same set holds for candidates and graders.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from boxeval.errors import UsageError
from boxeval.formats.mounts import below
from boxeval.formats.place import show
from boxeval.spec.policy import ReadOnlyMount


@dataclass(frozen=True, slots=True)
class ProtectedRoots:
    """Real paths with the words for each: `declared` by the operator, `own` by boxeval."""

    declared: tuple[tuple[str, str], ...] = ()
    own: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, declared: Sequence[Path], own: Iterable[tuple[Path, str]]) -> ProtectedRoots:
        """Resolve them. Raises `UsageError` for a declared one that is missing or is no absolute directory."""
        made = []
        for place in declared:
            if not place.is_absolute():
                raise UsageError(f"--protected-root {place}: must be absolute")
            try:
                real = place.resolve(strict=True)
            except (OSError, ValueError, RuntimeError) as error:
                reason = getattr(error, "strerror", None) or error
                raise UsageError(f"--protected-root {place}: cannot be verified: {reason}") from None
            if not real.is_dir():
                raise UsageError(f"--protected-root {place}: is not a directory")
            made.append((str(real), f"the protected root {place}"))
        return cls(tuple(made), tuple((str(place.resolve()), name) for place, name in own))

    def fault(self, place: Path) -> str | None:
        """Why a path may not be shown to boxes: it is, holds or lies in a protected root. None if it may."""
        return _overlap(place, (*self.declared, *self.own))

    def source_fault(self, place: Path) -> str | None:
        """The same for the source of a fixture, which may lie in what boxeval protects by itself: it is copied."""
        return _overlap(place, self.declared)

    def mounts_fault(self, mounts: Iterable[ReadOnlyMount]) -> str | None:
        """The first mount that overlaps with a protected root."""
        return next((fault for mount in mounts if (fault := self.fault(Path(mount.source)))), None)


def _overlap(place: Path, roots: Iterable[tuple[str, str]]) -> str | None:
    for path in {os.path.realpath(place), os.path.normpath(place)}:
        for root, name in roots:
            if below(path, root) or below(root, path):
                return f"{show(str(place))} is, holds or lies in {name}"
    return None
