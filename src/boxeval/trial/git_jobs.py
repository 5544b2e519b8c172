"""What a box runs to make a fixture of one commit of a repository, and nothing that tells of others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rfc8785

from boxeval.sandbox.images import ImageInfo
from boxeval.sandbox.job import WORKSPACE, Job, shell

CLONE = ".boxeval-clone"
"""Where a fetch from a repository in the workspace goes: a folder of it."""
TIMEOUT_MS = 600_000
ROOT_DATE = "2020-01-01T00:00:00Z"
_IN_BOX = Path(__file__).with_name("history_in_box.py")

# What Git LFS keeps elsewhere differs from its pointer in a work tree and is as committed all the same.
_CLEAN = r"""
if [ "$(git rev-parse --is-bare-repository)" = false ]; then
    changed=$(git --no-replace-objects -c core.fsmonitor=false -c core.hooksPath=/dev/null \
        status --porcelain -- . ':(exclude,attr:filter=lfs)')
    test -z "$changed" || { echo 'the repository has uncommitted changes' >&2; exit 1; }
fi
git config uploadpack.allowAnySHA1InWant true
"""
_FETCH = r"""
git -c init.templateDir= init -q -b main "$BOXEVAL_INTO"
cd "$BOXEVAL_INTO"
git fetch -q --no-tags --no-recurse-submodules --update-shallow -- "$BOXEVAL_SOURCE" "$BOXEVAL_WANTED"
kind=$(git cat-file -t FETCH_HEAD)
git -c core.hooksPath=/dev/null reset -q --hard FETCH_HEAD
"""
_ALONE = r"""
git reset -q --soft "$(git commit-tree -m base 'HEAD^{tree}')"
rm -f .git/shallow
kind=none
"""
# A tag's object, or what lay before a lone root, is still there: objects that no ref reaches are dropped. An index
# holds times and inodes; one without them is the same each time, and no worse, since a snapshot has other ones.
_FORGET = r"""
rm -rf .git/FETCH_HEAD .git/ORIG_HEAD .git/logs .git/index
git read-tree HEAD
if [ "$kind" != commit ]; then git repack -adq; git prune --expire=now; fi
git ls-files -s -z | sed -zn 's/^160000 [^\t]*\t/S/p' | head -zn 1000
git ls-files -z ':(attr:filter=lfs)' | sed -z 's/^/L/' | head -zn 1000
"""


@dataclass(frozen=True, slots=True)
class Fetch:
    """Fetch `wanted` (a commit, branch or tag) from a `url`, or without one from the workspace itself.

    `alone`: the commit's tree as one root commit, instead of the commit with its ancestors.
    """

    url: str | None
    wanted: str
    alone: bool

    @property
    def inside(self) -> str:
        """The folder of the workspace that the repository goes to; empty for the workspace itself."""
        return "" if self.url else CLONE

    def jobs(self, image: ImageInfo) -> tuple[Job, ...]:
        """The commands, to be run in order in a box with Git."""
        env = {
            **_environment(image),
            "GIT_ALLOW_PROTOCOL": "file:http:https",
            "BOXEVAL_SOURCE": self.url or WORKSPACE,
            "BOXEVAL_WANTED": self.wanted,
            "BOXEVAL_INTO": f"{WORKSPACE}/{self.inside}",
        }
        fetch = _FETCH + (_ALONE if self.alone else "") + _FORGET
        texts = (fetch,) if self.url else (_CLEAN, fetch)
        return tuple(Job(shell(text), env, timeout_ms=TIMEOUT_MS) for text in texts)


@dataclass(frozen=True, slots=True)
class Writing:
    """Commits, files, staged files and hooks that are written into the workspace (`Workspace.written`)."""

    wanted: Mapping[str, Any]

    @property
    def content(self) -> bytes:
        """What the box is told, in one form for equal declarations."""
        return rfc8785.dumps(dict(self.wanted))

    def jobs(self, image: ImageInfo) -> tuple[Job, ...]:
        """The command, to be run in a box with Git and Python."""
        text = _IN_BOX.read_text("utf-8")
        env = {**_environment(image), "GIT_LITERAL_PATHSPECS": "1", "GIT_NO_REPLACE_OBJECTS": "1"}
        return (Job(("python3", "-I", "-c", text), env, stdin=self.content, timeout_ms=TIMEOUT_MS),)


def _environment(image: ImageInfo) -> dict[str, str]:
    return {
        "PATH": image.path_env,
        "HOME": "/home/agent",
        "LANG": "C.UTF-8",
        "GIT_TERMINAL_PROMPT": "0",
        **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in _WHO.items()},
    }


_WHO = {"NAME": "boxeval", "EMAIL": "boxeval@localhost", "DATE": ROOT_DATE}


def notes_of(said: bytes) -> Mapping[str, tuple[bytes, ...]]:
    """What the fetch told of its tree: submodules, which stay empty, and files that Git LFS keeps elsewhere."""
    names = said.split(b"\0")
    return {
        "submodules": tuple(name[1:] for name in names if name[:1] == b"S"),
        "lfsPointers": tuple(name[1:] for name in names if name[:1] == b"L"),
    }
