"""Trees on disk as dicts of paths, and the real Git over them. The bytes are the tests' own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from boxeval.rules.patch import FILE, LINK, PROGRAM, Blob

Tree = dict[bytes, Blob]
GIT = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}


def write(root: Path, tree: Tree) -> None:
    root.mkdir()
    for path, blob in tree.items():
        place = root / os.fsdecode(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        if blob.mode == LINK:
            place.symlink_to(os.fsdecode(blob.data))
        else:
            place.write_bytes(blob.data)
            place.chmod(0o755 if blob.mode == PROGRAM else 0o644)


def read(root: Path) -> Tree:
    tree = {}
    for place in root.rglob("*"):
        path = os.fsencode(place.relative_to(root))
        if place.is_symlink():
            tree[path] = Blob(LINK, os.readlink(os.fsencode(place)))  # noqa: PTH115  a Path drops a final slash
        elif place.is_file():
            tree[path] = Blob(PROGRAM if place.stat().st_mode & 0o100 else FILE, place.read_bytes())
    return tree


def apply(root: Path, patch: bytes, *options: str) -> None:
    if patch:
        command = ["git", "apply", "--whitespace=nowarn", *options]
        done = subprocess.run(command, cwd=root, env=GIT, input=patch, capture_output=True)
        assert done.returncode == 0, (done.stderr, patch)


def git(root: Path, *arguments: str) -> bytes:
    command = ["git", "-c", "core.autocrlf=false", *arguments]
    return subprocess.run(command, cwd=root, env=GIT, check=True, capture_output=True).stdout
