"""Runs inside a box, over a workspace: writes commits, files, staged files, hooks and programs as JSON on stdin says.

Only the standard library: it is sent as text to `python3 -I -c`. It works with Git's plumbing, so that no
hook or setting of the repository plays a part and nothing is left in the object store that is not reached.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def git(*arguments: str, data: bytes = b"") -> str:
    """Run Git and return what it printed, stripped. Its complaints go to stderr."""
    done = subprocess.run(["git", *arguments], input=data, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise SystemExit(f"git {arguments[0]} failed")
    return done.stdout.decode("utf-8", "surrogateescape").strip()


def write(name: str, text: str, mode: int) -> None:
    """Write a file in place of a file or of nothing, through no link."""
    path = Path(name)
    for folder in reversed(path.parents[:-1]):
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            raise SystemExit(f"{name}: {folder} is no directory")
        folder.mkdir(exist_ok=True)
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise SystemExit(f"{name}: is there already, and is no file")
    path.write_bytes(text.encode())
    path.chmod(mode)


def put(files: dict[str, Any]) -> dict[str, str]:
    """Write declared files; return the path in the work tree of each by the name that was declared."""
    paths = {name: "/".join(part for part in name.split("/") if part not in ("", ".")) for name in files}
    for name, value in files.items():
        text, mode = (value, "0644") if isinstance(value, str) else (value["text"], value["mode"])
        write(paths[name], text, int(mode, 8))
    return paths


def stage(paths: Iterable[str]) -> None:
    """Add files of the work tree to the index."""
    git("update-index", "--add", "-z", "--stdin", data="".join(f"{path}\0" for path in paths).encode())


def commit(message: str) -> None:
    """Make a commit of the index on the branch that HEAD names."""
    seen = subprocess.run(["git", "rev-parse", "-q", "--verify", "HEAD"], stdout=subprocess.PIPE, check=False)
    parents = ["-p", seen.stdout.decode().strip()] if seen.returncode == 0 else []
    made = git("commit-tree", *parents, git("write-tree"), data=f"{message.rstrip()}\n".encode())
    git("-c", "core.logAllRefUpdates=false", "update-ref", "HEAD", made)


def forget_times() -> None:
    """The index again, without what it holds of this box: times, inodes and the owner of files."""
    held = git("ls-files", "-s", "-z")
    Path(".git/index").unlink(missing_ok=True)
    git("update-index", "-z", "--index-info", data=held.encode("utf-8", "surrogateescape"))


def apply(wanted: dict[str, Any]) -> None:
    """Write all of it; `wanted` is what `boxeval.spec.workspace.Workspace.written` gives."""
    if wanted["commits"] is not None:
        git("-c", "init.templateDir=", "init", "-q", "-b", "main")
    for one in wanted["commits"] or ():
        stage(put(one["files"]).values())
        commit(one["message"])
    paths = put(wanted["files"] or {})
    stage(path for name, path in paths.items() if wanted["commitFiles"] or name in wanted["staged"])
    if wanted["commitFiles"]:
        commit("Add files")
    forget_times()
    for name, text in wanted["hooks"].items():
        write(f".git/hooks/{name}", text, 0o755)
    for name, text in wanted["bin"].items():
        write(f".git/fixture-bin/{name}", text, 0o755)


if __name__ == "__main__":
    apply(json.load(sys.stdin))
