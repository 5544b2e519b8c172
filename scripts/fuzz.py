"""Feeds every reader of hostile bytes with bytes (`make fuzz MINUTES=n`), each for its share of the time.

    fuzz.py [--minutes N] [--targets A,B] [--seed S] [--jobs J] [--out DIR]

With atheris (libFuzzer, led by coverage) if it is installed, else by chance. Inputs that found something new are kept
below DIR and are where the next run goes on; one that broke a reader is kept there too. Exit 1 if one did.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BROKEN = 77
IN_MEMORY = Path("/dev/shm")  # noqa: S108
PYTHON = [sys.executable, "-W", "ignore", __file__]


def fuzz_one(name: str, seconds: int, seed: int, out: Path) -> None:
    """Fuzz one target in this process. Ends the process."""
    corpus = out / name
    corpus.mkdir(parents=True, exist_ok=True)
    try:
        import atheris  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        by_chance(name, seconds, seed, corpus)
    with atheris.instrument_imports(include=["boxeval"]):
        import fuzz_targets
    plant(name, corpus)
    options = [
        f"-max_total_time={seconds}",
        f"-seed={seed}",
        f"-artifact_prefix={out}/{name}-",
        "-print_final_stats=1",
        "-timeout=30",
        "-rss_limit_mb=2048",
        "-max_len=32768",
    ]
    atheris.Setup([name, *options, str(corpus)], fuzz_targets.TARGETS[name])
    atheris.Fuzz()


def plant(name: str, corpus: Path) -> None:
    """Write the seeds of a target where the fuzzer begins."""
    from fuzz_seeds import seeds

    for number, data in enumerate(seeds()[name]):
        (corpus / f"seed-{number}").write_bytes(data)


def by_chance(name: str, seconds: int, seed: int, corpus: Path) -> None:
    """Seeds with bytes changed, cut and repeated. Ends the process."""
    from fuzz_targets import TARGETS

    plant(name, corpus)
    chance = random.Random(seed)  # noqa: S311
    pool = [path.read_bytes() for path in sorted(corpus.iterdir())]
    until, tries = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        data = bytearray(chance.choice(pool))
        for _ in range(chance.randint(1, 8)):
            at, size = chance.randrange(len(data) + 1), chance.randint(0, 16)
            piece = chance.choice([b"", chance.randbytes(size), bytes(data[at : at + size]) * 2])
            data[at : at + chance.choice([0, size])] = piece
        tries += 1
        try:
            TARGETS[name](bytes(data))
        except Exception:
            (corpus.parent / f"{name}-crash-{tries}").write_bytes(data)
            traceback.print_exc()
            sys.exit(BROKEN)
    print(f"stat::number_of_executed_units: {tries}")
    sys.exit(0)


def watched(name: str, seconds: int, seed: int, out: Path) -> tuple[str, int, str | None]:
    """Fuzz one target in a process of its own: its name, the number of tries, and what broke it."""
    arguments = ["--one", name, "--seconds", str(seconds), "--seed", str(seed), "--out", str(out)]
    # In memory, and removed here, since a fuzzer ends its process without a goodbye.
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as temp:
        done = subprocess.run(
            [*PYTHON, *arguments],
            env={**os.environ, "TMPDIR": temp},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    said = done.stdout + done.stderr
    found = re.findall(r"number_of_executed_units: +(\d+)", said) or re.findall(
        r"^#(\d+)", said, re.MULTILINE
    )
    broken = None if done.returncode == 0 else said[-3000:]
    return name, int(found[-1]) if found else 0, broken


def main() -> int:
    """Fuzz all, or be the process of one."""
    options = argparse.ArgumentParser()
    options.add_argument("--minutes", type=float, default=10)
    options.add_argument("--targets")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options.add_argument("--out", type=Path, default=Path("build/fuzz"))
    options.add_argument("--one", help=argparse.SUPPRESS)
    options.add_argument("--seconds", type=int, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.one:
        fuzz_one(chosen.one, chosen.seconds, chosen.seed, chosen.out)
    from fuzz_targets import TARGETS

    names = chosen.targets.split(",") if chosen.targets else list(TARGETS)
    seconds = max(int(chosen.minutes * 60 * chosen.jobs / len(names)), 1)
    broken, all_tries = 0, 0
    with ThreadPoolExecutor(chosen.jobs) as pool:
        for name, tries, why in pool.map(lambda n: watched(n, seconds, chosen.seed, chosen.out), names):
            print(
                f"{name:20}{tries:12} tries in {seconds} s" + (f"  BROKEN\n{why}" if why else ""), flush=True
            )
            broken, all_tries = broken + bool(why), all_tries + tries
    print(
        f"fuzz: {all_tries} tries of {len(names)} readers in {seconds * len(names) / 60:.0f} minutes of one processor; "
        f"{broken} broken{'' if broken else f', 95 % bound {3 / max(all_tries, 1):.1e}'}; seed {chosen.seed}"
    )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
