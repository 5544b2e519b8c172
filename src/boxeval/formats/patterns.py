"""gitignore-style patterns of a suite: which can never match, and what the others match (D15)."""

from __future__ import annotations

from collections.abc import Iterable

import pathspec


def pattern_fault(pattern: str) -> str | None:
    """Why a pattern can never match a path of the workspace; None if it can."""
    text = rooted(pattern)
    if not pattern.strip():
        return "is empty and matches nothing"
    if "\0" in pattern or "\n" in pattern:
        return "has a character that it may not have"
    if pattern.startswith("#"):
        return "starts with `#` and is a comment; write `\\#`"
    if pattern != pattern.strip():
        return "starts or ends with a space; take the space away"
    if text.startswith(("/workspace/", "~")) or text == "/workspace":
        return "is outside the workspace; patterns start at the workspace's root"
    parts = text.removeprefix("!").strip("/").split("/")
    if ".." in parts:
        return "has `..` and can never match; patterns stay inside the workspace"
    if "." in parts or "" in parts:
        return "has an empty or `.` part and can never match"
    try:
        compiled = pathspec.GitIgnoreSpec.from_lines([text])
    except ValueError:
        return "is not a valid gitignore pattern"
    if all(p.include is None for p in compiled.patterns):
        return "is not a valid gitignore pattern"
    return None


def first_negation_fault(patterns: Iterable[str]) -> str | None:
    """A list that starts with `!x` takes back what nothing matched before."""
    first = next(iter(patterns), "")
    return "starts the list with `!` and has nothing to take back" if first.startswith("!") else None


def rooted(pattern: str) -> str:
    """`./x` as `/x`, also behind `!`: gitignore knows no `.`."""
    sign, rest = ("!", pattern[1:]) if pattern.startswith("!") else ("", pattern)
    return f"{sign}/{rest.removeprefix('./')}" if rest.startswith("./") else pattern


def matcher(patterns: Iterable[str]) -> pathspec.GitIgnoreSpec:
    """Matches workspace paths; a directory's path ends in `/`. Newlines in paths must be given as NUL."""
    return pathspec.GitIgnoreSpec.from_lines([rooted(pattern) for pattern in patterns])


def unmatched(patterns: Iterable[str], paths: Iterable[str]) -> tuple[str, ...]:
    """Patterns that match none of the paths, `!` patterns left out."""
    listed = list(paths)
    return tuple(p for p in patterns if not p.startswith("!") and not any(matcher([p]).match_files(listed)))
