"""Which lines differ: a shortest edit script with a hard bound on the work.

`difflib` has no such bound, and what is compared here was written by a candidate. The method is the greedy
one of Myers, "An O(ND) Difference Algorithm and Its Variations" (1986).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class Work:
    """Steps that may still be taken, and lines that may still be looked at, for all comparisons that share it.

    A line of two bytes takes 200 in memory while it is compared.
    """

    left: int = 2_000_000
    lines: int = 500_000

    def takes(self, *texts: bytes) -> bool:
        """Whether there is room for all lines of these texts, which are counted then."""
        count = sum(text.count(b"\n") for text in texts)
        if count > self.lines:
            return False
        self.lines -= count
        return True


@dataclass(frozen=True, slots=True)
class Edit:
    """Lines `old_from` to `old_to` become lines `new_from` to `new_to`; ends are exclusive, from 0."""

    old_from: int
    old_to: int
    new_from: int
    new_to: int


def edits(old: Sequence[bytes], new: Sequence[bytes], work: Work) -> list[Edit]:
    """All differences, in order, none touching the next.

    Once `work` is used up, everything from the first to the last difference is one edit: as right, but longer.
    """
    numbers: dict[bytes, int] = {}
    a = [numbers.setdefault(line, len(numbers)) for line in old]
    b = [numbers.setdefault(line, len(numbers)) for line in new]
    head = _common(a, b)
    tail = _common(a[head:][::-1], b[head:][::-1])
    a, b = a[head : len(a) - tail], b[head : len(b) - tail]
    if not a and not b:
        return []
    trace = _trace(a, b, work) if a and b else None
    if trace is None:
        return [Edit(head, head + len(a), head, head + len(b))]
    return [
        Edit(head + edit.old_from, head + edit.old_to, head + edit.new_from, head + edit.new_to)
        for edit in _merged(reversed(list(_walk_back(trace, len(a), len(b)))))
    ]


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    count = 0
    for one, other in zip(a, b, strict=False):
        if one != other:
            break
        count += 1
    return count


def _trace(a: Sequence[int], b: Sequence[int], work: Work) -> list[array[int]] | None:
    """For each number of edits d, how far every diagonal -d, -d+2, … d gets in `a`. None: too much work."""
    trace: list[array[int]] = []
    far: dict[int, int] = {1: 0}
    for d in range(len(a) + len(b) + 1):
        for k in range(-d, d + 1, 2):
            down = k == -d or (k != d and far[k - 1] < far[k + 1])
            start = x = far[k + 1] if down else far[k - 1] + 1
            while x < len(a) and x - k < len(b) and a[x] == b[x - k]:
                x += 1
            work.left -= 1 + x - start
            far[k] = x
            if x >= len(a) and x - k >= len(b):
                return trace
        if work.left < 0:
            return None
        trace.append(array("q", (far[k] for k in range(-d, d + 1, 2))))
    raise AssertionError("deleting all and inserting all is always an answer")


def _walk_back(trace: list[array[int]], x: int, y: int) -> Iterator[Edit]:
    """Single insertions and deletions, the last first."""
    for d in range(len(trace), 0, -1):
        before, k = trace[d - 1], x - y

        def far(diagonal: int, before: array[int] = before, d: int = d) -> int:
            return before[(diagonal + d - 1) // 2]

        down = k == -d or (k != d and far(k - 1) < far(k + 1))
        x = far(k + 1 if down else k - 1)
        y = x - (k + 1 if down else k - 1)
        yield Edit(x, x, y, y + 1) if down else Edit(x, x + 1, y, y)


def _merged(singles: Iterator[Edit]) -> Iterator[Edit]:
    run: Edit | None = None
    for edit in singles:
        if run is None:
            run = edit
        elif (run.old_to, run.new_to) == (edit.old_from, edit.new_from):
            run = Edit(run.old_from, edit.old_to, run.new_from, edit.new_to)
        else:
            yield run
            run = edit
    if run is not None:
        yield run
