"""Tampers with two sealed runs in every way of tests/tamper_cases.py (`make tamper`): none may be taken for good.

    tamper.py [--tries N] [--seed S] [--workers W]     N of the one run, half of N of the other

Prints how many were tried of each kind and what they were taken for. Exit 1 if one was taken for what it is not.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from pathlib import Path

import tamper_cases as tampering
from boxeval.receipts.verify import verify

IN_MEMORY = Path("/dev/shm")  # noqa: S108


RESUMED_STEP = 4
"""Of the run that was taken up again every fourth place is enough: it is twice as long."""


def share(number: int, workers: int, tries: int, seed: int) -> tuple[Counter[tuple[str, str]], list[str]]:
    """Try every `workers`th case, in a directory of its own: kinds with their verdicts, and what was wrong."""
    found: Counter[tuple[str, str]] = Counter()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as place:
        others = tampering.other_runs(Path(place))
        plain = tampering.write(Path(place) / "plain")
        resumed = tampering.write_resumed(Path(place) / "resumed")
        for run, step, some in ((plain, 1, tries), (resumed, RESUMED_STEP, tries // 2)):
            golden, sealed = tampering.files_of(run), verify(run, tampering.TRUST).trials
            every = islice(tampering.cases(golden, others, seed, step), some)
            for case in islice(every, number, None, workers):
                tampering.apply(run, case.files)
                verdict = tampering.verdict_on(run, case, sealed)
                tampering.apply(run, {name: golden[name] for name in case.files})
                found[case.kind, verdict] += 1
                if not tampering.is_right(case, verdict):
                    wrong.append(f"{run.name}, {case.kind}, {case.what}: {verdict}")
            if not verify(run, tampering.TRUST).complete:
                wrong.append(f"{run.name} is not what it was: some case was not undone")
    return found, wrong


def main() -> int:
    """Try them all."""
    options = argparse.ArgumentParser()
    options.add_argument("--tries", type=int, default=90_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    chosen = options.parse_args()
    began = time.monotonic()
    found: Counter[tuple[str, str]] = Counter()
    wrong: list[str] = []
    with ProcessPoolExecutor(chosen.workers) as pool:
        shares = [
            pool.submit(share, n, chosen.workers, chosen.tries, chosen.seed) for n in range(chosen.workers)
        ]
        for one in shares:
            kinds, faults = one.result()
            found += kinds
            wrong += faults
    for kind in sorted({kind for kind, _ in found}):
        verdicts = {verdict: n for (k, verdict), n in sorted(found.items()) if k == kind}
        told = ", ".join(f"{n} {verdict}" for verdict, n in verdicts.items())
        print(f"{kind:28}{sum(verdicts.values()):8}  {told}")
    for line in wrong[:20]:
        print(f"WRONG: {line}")
    tried = found.total()
    accepted = sum(n for (_, verdict), n in found.items() if verdict == "accepted")
    print(
        f"tamper: {tried} tried, {accepted} accepted as good, {len(wrong)} wrong; 95 % bound {3 / tried:.1e}; "
        f"seed {chosen.seed}; {time.monotonic() - began:.0f} s with {chosen.workers} workers"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
