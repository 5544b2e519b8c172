"""What a trial costs, as a ratio to bare containers of the same engine in the same run.

Prints tables and writes build/bench.json.

    python scripts/bench.py [--rounds N]

Bare means `docker run --rm --network none IMAGE true` by the docker command. A trial is whole: fixture in,
an agent that does nothing, collect, one shell grader, sealed receipt. Rounds of bare runs and trials
alternate, since machines drift.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from boxeval.receipts.ledger import LEDGER
from boxeval.run.controller import run_suite
from boxeval.run.events import RunRequest
from boxeval.sandbox.engine import connect
from boxeval.sandbox.images import ensure
from boxeval.sandbox.ownership import Owner
from boxeval.sandbox.sweep import clean
from boxeval.settings import Settings, load_settings
from boxeval.spec.plan import Plan, PlannedTrial
from boxeval.spec.trial import Trial

SUITE = """\
version: 2
suite: {id: bench, title: Bench, visibility: local}
matrix: {targets: [{id: local}]}
tasks:
  - id: nothing
    workspace: {kind: inline, files: {a.txt: "one\\n"}}
    runner: {kind: external-command, command: "true"}
    verify: {commands: ["true"]}
"""
BARE_PER_ROUND = 4
TRIALS_PER_ROUND = 4
PARALLEL = (2, 4)
PARALLEL_COUNT = 24
BUILD = Path(__file__).parent.parent / "build"


class Clock:
    """Notes when each trial's receipt was durable."""

    def __init__(self) -> None:
        self.began = 0.0
        self.ends: list[float] = []
        self.trials: list[Trial] = []

    def note(self, text: str) -> None:
        print(text, file=sys.stderr)

    def planned(self, plan: Plan, directory: Path, jobs: int) -> None:
        pass

    def started(self, trial: PlannedTrial, step: str) -> None:
        pass

    def finished(self, trial: Trial) -> None:
        self.ends.append(time.monotonic())
        self.trials.append(trial)


def bare(image: str) -> float:
    """Milliseconds of one bare run."""
    began = time.monotonic()
    subprocess.run(["docker", "run", "--rm", "--network", "none", image, "true"], check=True)
    return (time.monotonic() - began) * 1000


def run_trials(suite: Path, settings: Settings, count: int, jobs: int, out: Path) -> Clock:
    """Run the bench suite; every trial must pass, or the figures mean nothing."""
    clock = Clock()
    run_suite(RunRequest(suite, out=out, jobs=jobs, repeats=count), clock, settings)
    if any(trial.outcome.task != "passed" for trial in clock.trials) or len(clock.trials) != count:
        raise SystemExit("a bench trial did not pass; see boxeval doctor")
    return clock


def rounds(image: str, suite: Path, settings: Settings, out: Path, count: int) -> tuple[list[float], ...]:
    """Alternate bare runs, pairs of them, and trials; return the three lists in milliseconds, and all steps."""
    one: list[float] = []
    two: list[float] = []
    whole: list[float] = []
    steps: dict[str, list[float]] = {}
    for number in range(count):
        one += [bare(image) for _ in range(BARE_PER_ROUND)]
        two += [bare(image) + bare(image) for _ in range(BARE_PER_ROUND)]
        # The first trial of a run opens its slot; from receipt to receipt is what one more trial costs.
        clock = run_trials(suite, settings, TRIALS_PER_ROUND + 1, 1, out / f"round{number}")
        gaps = zip(clock.ends, clock.ends[1:], strict=False)
        whole += [(after - before) * 1000 for before, after in gaps]
        for trial in clock.trials[1:]:
            for step, took in trial.steps_ms.items():
                steps.setdefault(step, []).append(took)
            steps.setdefault("whole trial without seal", []).append(trial.wall_ms)
    return one, two, whole, steps  # type: ignore[return-value]


def bare_rate(image: str, jobs: int) -> float:
    """Bare runs a second, `jobs` at a time."""
    began = time.monotonic()
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda _: bare(image), range(PARALLEL_COUNT)))
    return PARALLEL_COUNT / (time.monotonic() - began)


def trial_rate(clock: Clock, jobs: int) -> float:
    """Trials a second once all slots are open."""
    ends = sorted(clock.ends)[jobs - 1 :]
    return (len(ends) - 1) / (ends[-1] - ends[0])


def help_ratio() -> float:
    """Cost of `boxeval --help` in empty Python processes."""

    def cost(argv: list[str]) -> float:
        took = []
        for _ in range(15):
            began = time.monotonic()
            subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
            took.append(time.monotonic() - began)
        return statistics.median(took)

    boxeval = str(Path(sys.executable).with_name("boxeval"))
    return cost([boxeval, "--help"]) / cost([sys.executable, "-c", "pass"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=4)
    count: int = parser.parse_args().rounds
    engine = connect()
    image = ensure(engine, "boxeval/grader", note=print).tag
    with tempfile.TemporaryDirectory(prefix="boxeval-bench-") as temp:
        out = Path(temp)
        settings = load_settings({**os.environ, "BOXEVAL_DATA_DIR": str(out / "data")})
        suite = out / "bench.yaml"
        suite.write_text(SUITE)
        try:
            run_trials(suite, settings, 1, 1, out / "warm")
            bare(image)
            one, two, whole, steps = rounds(image, suite, settings, out, count)
            rates = {"1": 1000 / statistics.median(whole)}
            bare_rates = {"1": 1000 / statistics.median(one)}
            for jobs in PARALLEL:
                bare_rates[str(jobs)] = bare_rate(image, jobs)
                clock = run_trials(suite, settings, PARALLEL_COUNT + jobs, jobs, out / f"parallel{jobs}")
                rates[str(jobs)] = trial_rate(clock, jobs)
            ledger_bytes = (out / "round0" / LEDGER).stat().st_size
        finally:
            clean(engine, Owner.here(settings.data_dir), cache=True)
            engine.close()
    median = {name: statistics.median(values) for name, values in steps.items()}  # type: ignore[attr-defined]
    trial_ms, two_ms = statistics.median(whole), statistics.median(two)
    result = {
        "samples": {"bare": len(one), "two_bare": len(two), "trial": len(whole)},
        "bare_run_ms": statistics.median(one),
        "two_bare_runs_ms": two_ms,
        "trial_ms": trial_ms,
        "ratio": trial_ms / two_ms,
        "trials_per_s": rates,
        "bare_per_s": bare_rates,
        "steps_ms": median | {"seal and hand over": trial_ms - median["whole trial without seal"]},
        "help_ratio": help_ratio(),
        "receipt_bytes": ledger_bytes // (TRIALS_PER_ROUND + 1),
    }
    BUILD.mkdir(exist_ok=True)
    (BUILD / "bench.json").write_text(json.dumps(result, indent=2) + "\n")
    show(result)


def show(result: dict[str, object]) -> None:
    """Print the result as tables."""
    print(f"\nmedian of {result['samples']}")
    for name in ("bare_run_ms", "two_bare_runs_ms", "trial_ms"):
        print(f"  {name:<26}{result[name]:8.0f}")
    print(f"  {'ratio':<26}{result['ratio']:8.2f}   (a trial to two bare runs; goal 0.75)")
    print(f"  {'help_ratio':<26}{result['help_ratio']:8.1f}   (boxeval --help to an empty Python; at most 6)")
    print("\nwhere a trial's time goes, ms")
    for name, took in result["steps_ms"].items():  # type: ignore[attr-defined]
        print(f"  {name:<26}{took:8.0f}")
    print(f"\n  {'at a time':<10}{'bare/s':>10}{'trials/s':>10}")
    for jobs, rate in result["bare_per_s"].items():  # type: ignore[attr-defined]
        print(f"  {jobs:<10}{rate:10.2f}{result['trials_per_s'][jobs]:10.2f}")  # type: ignore[index]


if __name__ == "__main__":
    main()
