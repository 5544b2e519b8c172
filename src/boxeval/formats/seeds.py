"""Seed directories: public dependencies of the operator's machine, copied into the runtime directory of boxes (G75)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from boxeval.errors import FixtureError
from boxeval.formats.directory import index_directory, open_below
from boxeval.formats.tree_index import Fixture, Item, TreeIndex, entry
from boxeval.spec.tree import FixtureEntry
from boxeval.spec.trial import EntryKind

MAX_ENTRIES = 16_384
MAX_BYTES = 512 * 1024 * 1024
RESERVED = ("home", "tmp")


@dataclass(frozen=True, slots=True)
class Tree:
    """A directory that was read, with the words for it."""

    root: Path
    place: str
    index: TreeIndex


def read_seed(root: Path, place: str) -> Tree:
    """Read a seed. Raises `FixtureError` for special files, links that lead out, and past the bounds."""
    index = index_directory(root, (), TreeIndex(place, MAX_BYTES, advice="a seed is at most that"))
    if len(index.items) > MAX_ENTRIES:
        raise FixtureError(f"{place}: has {len(index.items)} entries; a seed has at most {MAX_ENTRIES}")
    return Tree(root, place, index)


def joined(trees: Mapping[str, Tree]) -> Fixture:
    """Seeds as one fixture, each below the name of its target."""
    whole = TreeIndex("runtime.seedDirectories", len(trees) * MAX_BYTES)
    origins: dict[bytes, tuple[Tree, Item]] = {}
    for target, tree in trees.items():
        name = target.encode()
        whole.add(Item(name, EntryKind.DIRECTORY, 0o755))
        whole.count(tree.index.size_bytes)
        for item in tree.index.items.values():
            moved = replace(item, path=name + b"/" + item.path)
            whole.add(moved)
            origins[moved.path] = (tree, item)

    def entries() -> Iterator[FixtureEntry]:
        for moved in whole.sorted():
            if moved.path not in origins:
                yield entry(moved, None)
                continue
            tree, item = origins[moved.path]
            made = entry(item, lambda found, tree=tree: open_below(tree.root, found, tree.place))  # type: ignore[misc]
            yield replace(made, path=moved.path)

    return Fixture(whole.digest(), entries, whole.size_bytes, len(whole.items))
