"""Reads a local repository's refs as plain files. Git itself never runs on the host."""

from __future__ import annotations

import re
from pathlib import Path

from boxeval.formats.yaml_source import read_bounded

_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_MAX_HOPS = 5


def git_directory(path: Path) -> Path | None:
    """The git directory of a work tree or a bare repository; None if there is none."""
    for candidate in (path / ".git", path):
        if (candidate / "HEAD").is_file() and ((candidate / "objects").is_dir()):
            return candidate
    return None


def elsewhere(path: Path) -> str | None:
    """Why the objects of a repository are not all below `path`, so that a copy of it is none; None if they are."""
    if (path / ".git").is_file():
        return "is a linked work tree or a submodule; name its main repository, with `commit` or `checkout`"
    directory = git_directory(path)
    if directory and _line(directory / "objects" / "info" / "alternates"):
        return (
            "borrows objects from another repository (objects/info/alternates); `git repack -ad` copies them"
        )
    return None


def resolve(directory: Path, name: str) -> str | None:
    """The object id that a branch, a tag or HEAD names; None if no loose or packed ref tells it."""
    names = (
        ["HEAD"] if name == "HEAD" else [f"refs/heads/{name}", f"refs/tags/{name}", f"refs/remotes/{name}"]
    )
    packed = _packed(directory)
    for ref in names:
        for _ in range(_MAX_HOPS):
            text = _line(directory / ref) or packed.get(ref, "")
            if not text.startswith("ref:"):
                break
            ref = text.removeprefix("ref:").strip()
            if ".." in ref.split("/") or ref.startswith("/"):
                return None
        if _COMMIT.fullmatch(text):
            return text
    return None


def _line(path: Path) -> str:
    try:
        return read_bounded(path).decode("utf-8", "replace").split("\n")[0].strip()
    except (OSError, ValueError):
        return ""


def _packed(directory: Path) -> dict[str, str]:
    try:
        text = read_bounded(directory / "packed-refs").decode("utf-8", "replace")
    except (OSError, ValueError):
        return {}
    pairs = [
        line.split(" ", 1) for line in text.split("\n") if " " in line and not line.startswith(("#", "^"))
    ]
    return {name.strip(): commit for commit, name in pairs}
