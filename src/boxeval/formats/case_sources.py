"""The source map: names that cases use for repositories of the operator's machine (contract G57)."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from boxeval.errors import SuiteError, UsageError
from boxeval.formats.git_refs import git_directory
from boxeval.formats.host_files import read_source
from boxeval.formats.place import show
from boxeval.formats.yaml_source import in_order

MAX_BYTES = 1024 * 1024


def read_source_map(file: Path, root: Path) -> dict[str, Path]:
    """Names to directories, links resolved. Each is a `file:///` URL of a repository below `root`.

    Raises `UsageError` for a root that is no directory, `SuiteError` with every wrong entry of the map.
    """
    try:
        real_root = root.resolve(strict=True)
    except (OSError, ValueError, RuntimeError) as error:
        raise UsageError(f"--case-source-root {root}: {getattr(error, 'strerror', None) or error}") from None
    if not real_root.is_dir():
        raise UsageError(f"--case-source-root {root}: is not a directory")
    source, _ = read_source(file, "source map", MAX_BYTES)
    problems = list(source.problems)
    if not isinstance(source.tree, dict):
        raise SuiteError([*problems, source.problem((), "must be a mapping of names to file:/// URLs")])
    found: dict[str, Path] = {}
    for name, url in source.tree.items():
        place = _repository(url, real_root)
        if isinstance(place, Path):
            found[name] = place
        else:
            problems.append(source.problem((name,), place))
    if problems:
        raise SuiteError(in_order(problems))
    return found


def named_source(name: str, file: Path | None, root: Path | None) -> Path:
    """The repository of one name. Raises `UsageError` if a flag or the name is missing, and as `read_source_map`."""
    if file is None or root is None:
        raise UsageError(f"sourceRef {show(name)} needs --case-source-root and --case-source-map-file")
    found = read_source_map(file, root)
    if name not in found:
        known = ", ".join(map(show, found)) or "none"
        raise UsageError(f"sourceRef {show(name)} is not in {file} (known: {known})")
    return found[name]


def _repository(url: object, root: Path) -> Path | str:
    """The directory, or why it is refused."""
    if not isinstance(url, str) or not url.startswith("file:///"):
        return "must be a file:/// URL"
    parts = urlsplit(url)
    if parts.query or parts.fragment:
        return f"{show(url)} has a query or a fragment"
    try:
        place = Path(unquote(parts.path, errors="surrogateescape")).resolve(strict=True)
    except (OSError, ValueError, RuntimeError) as error:
        return f"{show(url)} cannot be read: {getattr(error, 'strerror', None) or error}"
    if not place.is_relative_to(root):
        return f"{show(url)} is not below --case-source-root"
    if not place.is_dir() or git_directory(place) is None:
        return f"{show(url)} is not the root of a Git repository"
    return place
