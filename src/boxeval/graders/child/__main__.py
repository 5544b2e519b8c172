"""The child's loop: a request of one JSON line and a text in, one JSON line out, until the pipe ends.

Bounds itself: memory, and processor time anew for each request; the kernel ends it past either. It can write no file.
"""

from __future__ import annotations

import json
import math
import os
import resource
import sys
from typing import Any

CPU_S = 3
MEMORY_BYTES = 1 << 30
RECURSION = 4000


def main() -> None:
    """Serve until stdin ends."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    _bound()
    from boxeval.graders.child.grading import Grading

    grading = Grading()
    _say(answers, {"ready": True})
    while line := requests.readline():
        request = json.loads(line)
        text = requests.read(request["size"])
        used = resource.getrusage(resource.RUSAGE_SELF)
        soft = math.ceil(used.ru_utime + used.ru_stime) + CPU_S
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))
        _say(answers, grading.answer(request, text))


def _bound() -> None:
    sys.setrecursionlimit(RECURSION)
    for kind, limit in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        # Not the address space: V8 reserves far more of it than it ever touches.
        (resource.RLIMIT_DATA, MEMORY_BYTES),
    ):
        resource.setrlimit(kind, (limit, limit))


def _say(answers: Any, value: Any) -> None:
    answers.write(json.dumps(value).encode() + b"\n")
    answers.flush()


if __name__ == "__main__":
    main()
    os._exit(0)
