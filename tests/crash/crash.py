"""Kill the controller at every named point, many times, and count what is lost, doubled or left (`make crash`).

Each try: run a suite of two trials until the controller kills itself, see what the ledger holds, let the watchdog or
the next start remove what is left, `run --resume`, and compare with a run that nobody disturbed. Tries are forks of one
process that has imported everything, so they cost little more than their boxes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

from stopping import POINTS, Stop, Stopper

from boxeval.receipts.trust import Trust
from boxeval.receipts.verify import VerifiedRun, verify
from boxeval.sandbox.engine import Engine, connect
from boxeval.sandbox.ownership import RUN
from boxeval.settings import Settings
from boxeval.spec.outcome import Weight
from engine_runs import forget, settings_in, write_suite

SUITE = """
tasks:
  - id: good
    workspace: {kind: inline, files: {a: "one\\n"}}
    runner: {kind: external-command, command: "echo go; sleep 0.1; echo two > a"}
    verify: {commands: ["echo check; sleep 0.1; grep -q two a"]}
  - id: bad
    workspace: {kind: inline, files: {a: "one\\n"}}
    runner: {kind: external-command, command: "echo go; sleep 0.1; echo three > a"}
    verify: {commands: ["echo check; sleep 0.1; grep -q two a"]}
"""
GONE_S = 60
NTH, JOBS = (1, 2), (1, 2)
WAYS = ("watchdog", "watchdog", "sweep", "race")
"""Who removes what is left: the watchdog; the next start, the watchdog being dead too; both at once."""


@dataclass(frozen=True, slots=True)
class Try:
    """What one kill came to. `gone_s`: until nothing was left on the engine, by the watchdog alone."""

    point: str
    way: str
    reached: bool
    lost: int
    duplicates: int
    left: int
    same: bool
    gone_s: float
    seconds: float
    note: str = ""

    @property
    def is_good(self) -> bool:
        """Whether nothing went wrong."""
        return self.reached and self.same and not (self.lost or self.duplicates or self.left)


class Ground:
    """A home with a suite in it, and the verdicts of a run that nobody disturbed."""

    def __init__(self, home: Path, cache: Path) -> None:
        self.home = home
        self.settings: Settings = settings_in(home / "bx", cache)
        os.environ.update({"BOXEVAL_HOME": str(home / "bx"), "BOXEVAL_CACHE_DIR": str(cache)})
        self.suite = write_suite(home, SUITE)
        self.engine: Engine = connect()
        status = self.command("run", str(self.suite), "--out", str(home / "calm"), "--quiet")
        if status != 1 << 8:
            raise RuntimeError(f"the undisturbed run ended with {status}: {(home / 'log').read_text()}")
        self.calm = verdicts(self.verified(home / "calm"))

    def verified(self, run: Path) -> VerifiedRun:
        return verify(run, Trust.local(self.settings))

    def command(self, *arguments: str, stop: Stop | None = None) -> int:
        """Run a command line in a fork; return its wait status."""
        child = os.fork()
        if child:
            return os.waitpid(child, 0)[1]
        try:
            os.setsid()
            log = os.open(self.home / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            for stream in (1, 2):
                os.dup2(log, stream)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            if stop:
                Stopper(stop).install()
            from boxeval.cli.app import call

            os._exit(call(list(arguments)))
        except BaseException:
            traceback.print_exc()
            os._exit(99)

    def objects(self, run_id: str) -> int:
        """Containers, volumes and networks of a run."""
        label, api = {"label": f"{RUN}={run_id}"}, self.engine.api
        return (
            len(api.containers(all=True, filters=label))
            + len(api.volumes(filters=label)["Volumes"] or ())
            + len(api.networks(filters=label))
        )

    def wait_until_gone(self, run_id: str) -> int:
        until = time.monotonic() + GONE_S
        while (left := self.objects(run_id)) and time.monotonic() < until:
            time.sleep(0.1)
        return left

    def close(self) -> None:
        self.engine.close()
        forget(self.settings)


def verdicts(run: VerifiedRun) -> dict[str, tuple[str, str]]:
    """What counts of a run."""
    return {
        f"{trial.task}#{trial.repeat}": (str(trial.outcome.task), str(trial.outcome.failure_class))
        for trial in run.trials
        if trial.outcome.weight is Weight.SCORED
    }


def attempt(ground: Ground, point: str, seed: int) -> Try:
    """One kill and what comes after it."""
    chance = random.Random(f"{point} {seed}")
    way, nth, jobs = chance.choice(WAYS), chance.choice(NTH), chance.choice(JOBS)
    run, acknowledged = ground.home / "run", ground.home / "acknowledged"
    shutil.rmtree(run, ignore_errors=True)
    acknowledged.unlink(missing_ok=True)
    began = time.monotonic()
    stop = Stop(point, nth, way == "sweep", seed, acknowledged)
    status = ground.command(
        "run", str(ground.suite), "--out", str(run), "--jobs", str(jobs), "--quiet", stop=stop
    )
    died = time.monotonic()
    if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
        return Try(point, way, False, 0, 0, 0, False, 0, 0, (ground.home / "log").read_text()[-300:])
    run_id = str(json.loads((run / "plan.json").read_text())["runId"])
    left = ground.wait_until_gone(run_id) if way == "watchdog" else 0
    gone_s = time.monotonic() - died
    before = ground.verified(run)
    acked = acknowledged.read_text().split() if acknowledged.exists() else []
    status = ground.command("run", "--resume", str(run), "--jobs", str(jobs), "--quiet")
    left += ground.wait_until_gone(run_id)
    after = ground.verified(run)
    sealed = [Counter(t.trial_id for t in found.trials) for found in (before, after)]
    lost = sum(name not in one for name in acked for one in sealed)
    lost += sum(name not in sealed[1] for name in sealed[0])
    same = status == 1 << 8 and after.complete and verdicts(after) == ground.calm
    return Try(
        point,
        way,
        True,
        lost,
        sum(count - 1 for count in sealed[1].values()),
        left,
        same,
        gone_s if way == "watchdog" else 0.0,
        time.monotonic() - began,
        "" if same else f"status {status}, {after.problems}, {(ground.home / 'log').read_text()[-300:]}",
    )


@contextmanager
def ground(cache: Path | None = None) -> Iterator[Ground]:
    """A ground in a short directory of its own: a gateway's socket has a path of at most 107 bytes."""
    home = Path(tempfile.mkdtemp(prefix="bxc-", dir="/tmp"))
    try:
        made = Ground(home, cache or Path(os.environ.get("BOXEVAL_CACHE_DIR", home / "cache")))
        try:
            yield made
        finally:
            made.close()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def work(number: int, workers: int, points: tuple[str, ...], tries: int, seed: int, out: int) -> None:
    """One of several processes: every `workers`-th try, a line of JSON for each."""
    with ground() as place:
        for index in range(number, tries * len(points), workers):
            try:
                made = attempt(place, points[index % len(points)], seed + index // len(points))
            except Exception as error:
                made = Try(points[index % len(points)], "", False, 0, 0, 0, False, 0, 0, f"{error!r}"[:300])
            os.write(out, json.dumps(asdict(made)).encode() + b"\n")


def table(tries: list[Try], seed: int) -> str:
    """The figures, by point."""
    head = (
        "point",
        "tries",
        "lost",
        "duplicates",
        "left behind",
        "other verdicts",
        "removed in s",
        "seed",
        "95 % bound",
    )
    rows = [head]
    for point in [p for p in POINTS if any(t.point == p for t in tries)]:
        own = [t for t in tries if t.point == point]
        waits = sorted(t.gone_s for t in own if t.gone_s)
        rows.append(
            (
                point,
                str(len(own)),
                str(sum(t.lost for t in own)),
                str(sum(t.duplicates for t in own)),
                str(sum(t.left for t in own)),
                str(sum(not t.same for t in own)),
                f"{waits[len(waits) // 2]:.1f} (worst {waits[-1]:.1f})" if waits else "",
                str(seed),
                f"{3 / len(own):.3f}" if all(t.is_good for t in own) else "",
            )
        )
    widths = [max(len(row[n]) for row in rows) for n in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def main() -> int:
    """Exit 0 if every try was good."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=100, help="for each point")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--points", nargs="+", choices=POINTS, default=POINTS)
    parser.add_argument("--json", action="store_true", help="one line a try instead of a table")
    chosen = parser.parse_args()
    began = time.monotonic()
    source, sink = os.pipe()
    children = []
    for number in range(chosen.workers):
        child = os.fork()
        if not child:
            os.close(source)
            try:
                work(number, chosen.workers, tuple(chosen.points), chosen.tries, chosen.seed, sink)
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        children.append(child)
    os.close(sink)
    made: list[Try] = []
    with os.fdopen(source) as lines:
        for line in lines:
            fields: dict[str, Any] = json.loads(line)
            made.append(Try(**fields))
            if chosen.json:
                print(line, end="", flush=True)
            elif not made[-1].is_good:
                print(f"NOT GOOD: {made[-1]}", flush=True)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    wanted = chosen.tries * len(chosen.points)
    if not chosen.json:
        print(table(made, chosen.seed))
        good = sum(one.is_good for one in made)
        bound = f"; 95 % bound for any fault {3 / wanted:.4f}" if good == wanted else ""
        took_s = time.monotonic() - began
        print(f"crash: {good} of {wanted} kills are good, in {took_s:.0f} s{bound}; seed {chosen.seed}")
    return 0 if len(made) == wanted and all(one.is_good for one in made) and not any(statuses) else 1


if __name__ == "__main__":
    sys.exit(main())
