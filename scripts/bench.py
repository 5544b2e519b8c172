"""What a trial costs, as a ratio to bare containers of the same engine in the same run.

Prints tables and writes build/bench.json.

    python scripts/bench.py [--rounds N]
    python scripts/bench.py --scale [--rounds N]

Bare means `docker run --rm --network none IMAGE true` by the docker command. A trial is whole: fixture in,
an agent that does nothing, collect, one shell grader, sealed receipt. Rounds of bare runs and trials
alternate, since machines drift.

With --scale it measures instead what a trial costs over fixtures of 10, 1,000 and 100,000 files of which one is
changed, after the first trial of each, and writes that beside the rest.
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
from boxeval.sandbox.engine import Engine, connect
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
SCALE = (10, 1_000, 100_000)
FILES_A_FOLDER = 1_000
SCALE_TASK = """\
  - id: files-{count}-{turn}
    workspace: {{kind: temp-copy, path: tree-{count}}}
    runner: {{kind: external-command, command: "echo changed > 0/0"}}
    verify: {{commands: ["grep -q changed 0/0"], assertions: [{{metric: patch.filesChanged, op: eq, value: 1}}]}}
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


def write_scale(directory: Path) -> Path:
    """A suite with two tasks for each size of fixture, and the fixtures."""
    for count in SCALE:
        for number in range(count):
            folder = directory / f"tree-{count}" / str(number // FILES_A_FOLDER)
            if number % FILES_A_FOLDER == 0:
                folder.mkdir(parents=True)
            (folder / str(number)).write_text(f"{number}\n")
    suite = directory / "scale.yaml"
    tasks = (SCALE_TASK.format(count=count, turn=turn) for count in SCALE for turn in "ab")
    suite.write_text(SUITE.partition("  - id")[0] + "".join(tasks))
    return suite


def scale(directory: Path, settings: Settings, rounds: int) -> dict[str, object]:
    """Trials of all sizes in turns, one at a time.

    Of two of a size in a row the second counts, since boxes of the trial before are removed meanwhile.
    """
    suite = write_scale(directory)
    clock = run_trials(suite, settings, rounds, 1, directory / "scale", tasks=2 * len(SCALE))
    took: dict[str, list[float]] = {}
    first: dict[str, float] = {}
    steps: dict[str, dict[str, list[float]]] = {}
    for trial, before, after in zip(clock.trials[1:], clock.ends, clock.ends[1:], strict=False):
        _, size, turn = trial.task.split("-")
        if turn == "b":
            took.setdefault(size, []).append((after - before) * 1000)
            for step, ms in trial.steps_ms.items():
                steps.setdefault(size, {}).setdefault(step, []).append(ms)
        else:
            first.setdefault(size, (after - before) * 1000)
    first.pop(str(SCALE[0]))  # the very first trial has no receipt before it to count from
    median = {size: statistics.median(values) for size, values in took.items()}
    ratios = {size: value / median[str(SCALE[0])] for size, value in median.items()}
    return {
        "samples": rounds,
        "trial_ms": median,
        "first_trial_ms": first,
        "ratio_to_smallest": ratios,
        "steps_ms": {
            size: {step: statistics.median(values) for step, values in own.items()}
            for size, own in steps.items()
        },
    }


def run_trials(suite: Path, settings: Settings, count: int, jobs: int, out: Path, tasks: int = 1) -> Clock:
    """Run a suite of `tasks` tasks, each `count` times; every trial must pass, or the figures mean nothing."""
    clock = Clock()
    run_suite(RunRequest(suite, out=out, jobs=jobs, repeats=count), clock, settings)
    if any(trial.outcome.task != "passed" for trial in clock.trials) or len(clock.trials) != count * tasks:
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


def trial_against_bare(engine: Engine, out: Path, settings: Settings, count: int) -> dict[str, object]:
    """The main measurement: `count` rounds, then parallel runs."""
    image = ensure(engine, "boxeval/grader", note=print).tag
    suite = out / "bench.yaml"
    suite.write_text(SUITE)
    run_trials(suite, settings, 1, 1, out / "warm")
    bare(image)
    one, two, whole, steps = rounds(image, suite, settings, out, count)
    rates = {"1": 1000 / statistics.median(whole)}
    bare_rates = {"1": 1000 / statistics.median(one)}
    for jobs in PARALLEL:
        bare_rates[str(jobs)] = bare_rate(image, jobs)
        clock = run_trials(suite, settings, PARALLEL_COUNT + jobs, jobs, out / f"parallel{jobs}")
        rates[str(jobs)] = trial_rate(clock, jobs)
    median = {name: statistics.median(values) for name, values in steps.items()}  # type: ignore[attr-defined]
    trial_ms, two_ms = statistics.median(whole), statistics.median(two)
    return {
        "samples": {"bare": len(one), "two_bare": len(two), "trial": len(whole)},
        "bare_run_ms": statistics.median(one),
        "two_bare_runs_ms": two_ms,
        "trial_ms": trial_ms,
        "ratio": trial_ms / two_ms,
        "trials_per_s": rates,
        "bare_per_s": bare_rates,
        "steps_ms": median | {"seal and hand over": trial_ms - median["whole trial without seal"]},
        "help_ratio": help_ratio(),
        "receipt_bytes": (out / "round0" / LEDGER).stat().st_size // (TRIALS_PER_ROUND + 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=None)
    parser.add_argument("--scale", action="store_true")
    chosen = parser.parse_args()
    engine = connect()
    with tempfile.TemporaryDirectory(prefix="boxeval-bench-") as temp:
        out = Path(temp)
        settings = load_settings({**os.environ, "BOXEVAL_DATA_DIR": str(out / "data")})
        try:
            if chosen.scale:
                measured = scale(out, settings, chosen.rounds or 12)
                write({"scale": measured})
                show_scale(measured)
            else:
                write(measured := trial_against_bare(engine, out, settings, chosen.rounds or 4))
                show(measured)
        finally:
            clean(engine, Owner.here(settings.data_dir), cache=True)
            engine.close()


def write(result: dict[str, object]) -> None:
    """Put a result beside what build/bench.json has of other measurements."""
    place = BUILD / "bench.json"
    BUILD.mkdir(exist_ok=True)
    kept = json.loads(place.read_text()) if place.is_file() else {}
    place.write_text(json.dumps(kept | result, indent=2) + "\n")


def show_scale(result: dict[str, object]) -> None:
    """Print the scale as a table."""
    print(f"\nmedian of {result['samples']}; one file changed; goal for the ratio 1.10")
    print(f"  {'files':<10}{'trial, ms':>10}{'ratio':>8}{'first, ms':>12}")
    for size, took in result["trial_ms"].items():  # type: ignore[attr-defined]
        first = result["first_trial_ms"].get(size)  # type: ignore[attr-defined]
        ratio = result["ratio_to_smallest"][size]  # type: ignore[index]
        print(f"  {size:<10}{took:10.0f}{ratio:8.3f}{f'{first:.0f}' if first else '':>12}")


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
