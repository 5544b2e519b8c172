"""`boxeval.git-head`: HEAD after the candidate against HEAD before it. Git runs in boxes alone (G22, G23)."""

from __future__ import annotations

import re

from boxeval.graders.interface import Bench, Phase, seen_of
from boxeval.rules.box_checks import box_error, git_head_verdict
from boxeval.sandbox.job import WORKSPACE, Job, shell
from boxeval.spec.box import BoxResult
from boxeval.spec.checks import GitHeadCheck
from boxeval.spec.graded import CheckSeen, GitHeadSeen

TIMEOUT_MS = 10_000
OUTPUT_BYTES = 128
_COMMIT = re.compile(rb"([0-9a-f]{40}|[0-9a-f]{64})")

# A candidate has written the repository: no configuration of it may start a program or name other places, and
# what it says of a commit's parents beside the commit itself (replacements, grafts, a commit graph) is not believed.
_READ = r"""
test -d .git && ! test -L .git || { echo 'no real .git directory' >&2; exit 3; }
git() {
    command git -c core.fsmonitor=false -c core.hooksPath=/dev/null -c core.commitGraph=false \
        -c core.useReplaceRefs=false --git-dir=.git --no-replace-objects "$@"
}
head=$(git rev-parse --verify --quiet 'HEAD^{commit}')
if test -z "$BOXEVAL_BASE"; then echo "$head"; exit 0; fi
set +e
git merge-base --is-ancestor "$BOXEVAL_BASE" "$head" 2>/dev/null
case $? in
    0) echo "$head yes" ;;
    1) echo "$head no" ;;
    *) if git cat-file -e "$BOXEVAL_BASE" 2>/dev/null; then exit 4; fi; echo "$head no" ;;
esac
"""


class GitHeadGrader:
    """All checks of a trial share one observation."""

    phase = Phase.GIT_HEAD

    def grade(self, check: GitHeadCheck, bench: Bench) -> CheckSeen:
        """Decide from the observation."""
        return seen_of(check, git_head_verdict(check.configuration, bench.git_head()))


def read_job(environment: dict[str, str], base: str = "") -> Job:
    """The command that tells HEAD, and with a `base` whether that is an ancestor of it."""
    env = {
        **environment,
        "HOME": "/nonexistent",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_GRAFT_FILE": "/dev/null",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CEILING_DIRECTORIES": WORKSPACE,
        "BOXEVAL_BASE": base,
    }
    return Job(shell(_READ), env, timeout_ms=TIMEOUT_MS, stdout_bytes=OUTPUT_BYTES)


def head_of(result: BoxResult, stdout: bytes) -> tuple[str, bool | None] | str:
    """HEAD and whether the base is an ancestor of it; a text if the state cannot be read."""
    if error := box_error(result, TIMEOUT_MS):
        return f"HEAD cannot be read: {error.reason}"
    command = result.commands[0]
    if command.exit_code != 0:
        return f"HEAD cannot be read: git exited {command.exit_code}"
    head, _, ancestry = stdout.strip().partition(b" ")
    if command.stdout.size_bytes > OUTPUT_BYTES or not _COMMIT.fullmatch(head):
        return "HEAD cannot be read: what git told is no commit"
    known = {b"yes": True, b"no": False, b"": None}
    if ancestry not in known:
        return "HEAD cannot be read: what git told of its ancestry is neither yes nor no"
    return head.decode(), known[ancestry]


def seen_after(base: str, result: BoxResult, stdout: bytes) -> GitHeadSeen:
    """The one observation of a trial."""
    read = head_of(result, stdout)
    if isinstance(read, str):
        return GitHeadSeen(base=base, error=read, box=result)
    return GitHeadSeen(base=base, current=read[0], base_is_ancestor=read[1], box=result)
