"""Which boxeval this is, by the content of its own files."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from boxeval.settings import PACKAGE, resource


@cache
def build_digest() -> str:
    """SHA-256 (hex) over names and contents of the package's modules, its images and its policies."""
    return tree_digest(
        {
            "boxeval": (PACKAGE, "*.py"),
            "images": (resource("images"), "*"),
            "policies": (resource("policies"), "*"),
        }
    )


def tree_digest(trees: dict[str, tuple[Path, str]]) -> str:
    """SHA-256 (hex) over the files below some directories that fit a pattern, by name; caches of Python are none."""
    total = hashlib.sha256()
    for name, (root, pattern) in sorted(trees.items()):
        for path in sorted(root.rglob(pattern)):
            if path.is_file() and "__pycache__" not in path.parts:
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                total.update(f"{name}/{path.relative_to(root).as_posix()}\0{content}\n".encode())
    return total.hexdigest()
