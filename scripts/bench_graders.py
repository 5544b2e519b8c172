"""What grading costs: output graders by message, and shell checks by bare container start of the same run.

Prints tables and writes them to build/bench.json.

    python scripts/bench_graders.py [--messages N] [--rounds N]

Output graders: N messages with ten graders each, one after another, as one worker grades them; memory of the
controller and of its child after a tenth of them and at the end. Shell checks: trials with one check and with eleven
alternate, and a tenth of the difference is what one more costs.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from bench import bare, run_trials, write
from pydantic import TypeAdapter

from boxeval.graders.examiner import Examiner
from boxeval.sandbox.engine import connect
from boxeval.sandbox.images import ensure
from boxeval.sandbox.ownership import Owner
from boxeval.sandbox.sweep import clean
from boxeval.settings import Settings, load_settings
from boxeval.spec.checks import Check

SCHEMA = {"type": "object", "required": ["items"], "properties": {"items": {"type": "array", "minItems": 1}}}
GRADERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("regex", {"pattern": r"^```json$"}),
    ("regex", {"pattern": r"\bfile-\d+\b", "flags": "i"}),
    ("regex", {"pattern": "error", "negate": True}),
    ("json", {"pointer": "/items/0/name"}),
    ("json", {"pointer": "/count", "equals": 20}),
    ("json", {"pointer": "/items", "contains": {"name": {"$regex": "^file-7$"}}}),
    ("schema", {"schema": SCHEMA}),
    ("schema", {"schema": {"properties": {"count": {"type": "integer"}}}}),
    ("output", {"validJson": True, "jsonPath": "/count", "expectJson": 20}),
    ("output", {"expectRegex": "items", "notRegex": "fail"}),
)
SUITE = """\
version: 2
suite: {{id: bench, title: Bench, visibility: local}}
matrix: {{targets: [{{id: local}}]}}
tasks:
  - id: checks-{count}
    workspace: {{kind: inline, files: {{a.txt: "one\\n"}}}}
    runner: {{kind: external-command, command: "true"}}
    verify:
      checks:
{checks}
"""
CHECK = '        - {{id: c{number}, grader: boxeval.shell, configuration: {{run: "true"}}}}'
MORE = 10


def message(number: int) -> bytes:
    """About 1.5 KiB: some words and a document."""
    items = ", ".join(f'{{"name": "file-{n}", "size": {n * number}}}' for n in range(20))
    return f'Here is what I found.\n\n```json\n{{"count": 20, "items": [{items}]}}\n```\n'.encode()


def resident_kib(process: int | str) -> int:
    """Memory of a process by the kernel."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def output_graders(count: int) -> dict[str, object]:
    """Grade messages; all must pass, or the figures mean nothing."""
    adapter: TypeAdapter[Check] = TypeAdapter(Check)
    checks = [
        adapter.validate_python(
            {"id": f"c{n}", "grader": f"boxeval.{name}", "configuration": told}, by_alias=True, by_name=False
        )
        for n, (name, told) in enumerate(GRADERS)
    ]
    memory: list[dict[str, int]] = []
    with Examiner() as examiner:
        for check in checks:
            if (said := examiner.grade(check, message(0))).status != "passed":
                raise SystemExit(f"{check.grader} does not pass: {said.reason}")
        child = examiner.processes[0]
        cpu = resource.getrusage(resource.RUSAGE_SELF)
        began = time.monotonic()
        for number in range(1, count + 1):
            for check in checks:
                if examiner.grade(check, message(number)).status != "passed":
                    raise SystemExit(f"message {number} does not pass {check.grader}")
            if number in (count // 10, count):
                memory.append({"controller": resident_kib("self"), "child": resident_kib(child)})
        took = time.monotonic() - began
        after = resource.getrusage(resource.RUSAGE_SELF)
    early, late = memory
    return {
        "messages": count,
        "graders_each": len(checks),
        "checks_per_s": count * len(checks) / took,
        "ms_per_check": took * 1000 / (count * len(checks)),
        "controller_cpu_ms_per_check": (after.ru_utime + after.ru_stime - cpu.ru_utime - cpu.ru_stime)
        * 1000
        / (count * len(checks)),
        "kib_after_a_tenth": early,
        "kib_at_the_end": late,
    }


def shell_checks(image: str, out: Path, settings: Settings, rounds: int) -> dict[str, object]:
    """Trials with one check and with eleven, and bare runs, in turns."""
    suites = {}
    for count in (1, 1 + MORE):
        checks = "\n".join(CHECK.format(number=number) for number in range(count))
        suites[count] = out / f"checks-{count}.yaml"
        suites[count].write_text(SUITE.format(count=count, checks=checks))
    run_trials(suites[1], settings, 1, 1, out / "warm")
    took: dict[int, list[float]] = {1: [], 1 + MORE: []}
    single: list[float] = []
    for number in range(rounds):
        single += [bare(image) for _ in range(4)]
        for count, suite in suites.items():
            clock = run_trials(suite, settings, 3, 1, out / f"round{number}-{count}")
            took[count] += [(b - a) * 1000 for a, b in zip(clock.ends, clock.ends[1:], strict=False)]
    bare_ms = statistics.median(single)
    more_ms = (statistics.median(took[1 + MORE]) - statistics.median(took[1])) / MORE
    return {
        "bare_run_ms": bare_ms,
        "trial_with_one_ms": statistics.median(took[1]),
        "trial_with_eleven_ms": statistics.median(took[1 + MORE]),
        "one_more_check_ms": more_ms,
        "ratio_to_bare": more_ms / bare_ms,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=4)
    chosen = parser.parse_args()
    text = output_graders(chosen.messages)
    engine = connect()
    with tempfile.TemporaryDirectory(prefix="boxeval-bench-") as temp:
        settings = load_settings({**os.environ, "BOXEVAL_DATA_DIR": f"{temp}/data"})
        try:
            image = ensure(engine, "boxeval/grader", note=print).tag
            shell = shell_checks(image, Path(temp), settings, chosen.rounds)
        finally:
            clean(engine, Owner.here(settings.data_dir), cache=True)
            engine.close()
    write({"graders": {"output": text, "shell": shell}})
    for name, values in {"output graders": text, "shell checks": shell}.items():
        print(f"\n{name}")
        for key, value in values.items():
            print(f"  {key:<30}{f'{value:.2f}' if isinstance(value, float) else value}")


if __name__ == "__main__":
    main()
