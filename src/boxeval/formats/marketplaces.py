"""Plugin marketplaces that a suite names, read from its directory: local files, no links (G51)."""

from __future__ import annotations

from pathlib import Path

from boxeval.errors import FixtureError
from boxeval.formats.directory import read_directory
from boxeval.formats.faults import Fault
from boxeval.formats.place import show
from boxeval.rules.paths import readable
from boxeval.spec.host_options import MARKETPLACE_FILES, Marketplace
from boxeval.spec.suite import Suite, Task
from boxeval.spec.trial import EntryKind

BYTES = 1024 * 1024


def with_marketplaces(suite: Suite, directory: Path) -> tuple[Suite, list[Fault]]:
    """The suite with the files of every marketplace that it names by a directory, and what cannot be read."""
    faults: list[Fault] = []
    tasks = []
    for index, task in enumerate(suite.tasks):
        host = task.runner.host
        if host is None or host.plugins is None or not isinstance(host.plugins.marketplace, str):
            tasks.append(task)
            continue
        try:
            tasks.append(_with(task, read_marketplace(directory, host.plugins.marketplace)))
        except FixtureError as error:
            tasks.append(task)
            faults.append((("tasks", index, "runner", "host", "plugins", "marketplace"), str(error)))
    return suite.model_copy(update={"tasks": tuple(tasks)}), faults


def read_marketplace(directory: Path, path: str) -> Marketplace:
    """All files of a marketplace. Raises `FixtureError`."""
    place = f"marketplace {show(path)}"
    files: dict[str, str] = {}
    for entry in read_directory(directory / path, (), BYTES, place).entries():
        name = readable(entry.path)
        if entry.kind is EntryKind.SYMLINK:
            raise FixtureError(f"{place}: {show(name)} is a symlink")
        if entry.open is None:
            continue
        with entry.open() as stream:
            data = stream.read()
        try:
            files[name] = data.decode("utf-8")
        except UnicodeDecodeError:
            raise FixtureError(f"{place}: {show(name)} is not UTF-8 text") from None
    if not 0 < len(files) <= MARKETPLACE_FILES:
        raise FixtureError(f"{place}: has {len(files)} files; it must have 1 to {MARKETPLACE_FILES}")
    return Marketplace(files=files)


def _with(task: Task, marketplace: Marketplace) -> Task:
    runner = task.runner
    assert runner.host is not None and runner.host.plugins is not None
    plugins = runner.host.plugins.model_copy(update={"marketplace": marketplace})
    host = runner.host.model_copy(update={"plugins": plugins})
    return task.model_copy(update={"runner": runner.model_copy(update={"host": host})})
