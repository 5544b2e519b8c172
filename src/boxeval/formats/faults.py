"""Checks of the small parts that suites are made of: texts, environments, files, patterns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from boxeval.formats.paths import collisions, file_fault
from boxeval.formats.patterns import first_negation_fault, pattern_fault
from boxeval.formats.place import Path, show
from boxeval.spec.workspace import InlineFile

Fault = tuple[Path, str]
"""A place below the thing that was checked, and what is wrong there."""

MAX_ARGUMENT_BYTES = 131_071
"""One argument of execve on Linux, without its NUL."""


def files_faults(files: Mapping[str, str | InlineFile]) -> Iterator[Fault]:
    """Paths that cannot be files of the workspace, or not beside each other."""
    good = []
    for path in files:
        if fault := file_fault(path):
            yield (path,), fault
        else:
            good.append(path)
    for path, fault in collisions(good):
        yield (path,), fault


def text_faults(text: str) -> Iterator[Fault]:
    """Text that cannot be one argument of a program."""
    if "\0" in text:
        yield (), "has a NUL character"
    if len(text.encode("utf-8", "surrogatepass")) > MAX_ARGUMENT_BYTES:
        yield (), "is over 128 KiB, the most that one argument of a program can hold; put it into a file"


def env_faults(env: Mapping[str, str]) -> Iterator[Fault]:
    """Values that cannot be in an environment."""
    for name, value in env.items():
        yield from below(name, text_faults(f"{name}={value}"))


def patterns_faults(key: str, patterns: tuple[str, ...]) -> Iterator[Fault]:
    """Patterns that can never match."""
    for index, pattern in enumerate(patterns):
        if fault := pattern_fault(pattern):
            yield (key, index), f"{show(pattern)} {fault}" if pattern.strip() else fault
    if fault := first_negation_fault(patterns):
        yield (key, 0), fault


def commands_faults(key: str, commands: tuple[str, ...]) -> Iterator[Fault]:
    """Commands that are too long for a shell to be given."""
    for index, command in enumerate(commands):
        yield from below(key, below(index, text_faults(command)))


def below(step: str | int, faults: Iterable[Fault]) -> Iterator[Fault]:
    """Faults of a part, as those of the whole."""
    for path, message in faults:
        yield (step, *path), message
