"""`boxeval.state`, `log-parse`, `ready`, `outcome` and `event-budget`: facts of one file, told by a program in a box.

The program (`file_program`) is ours and runs in boxeval's grader image; the file is the candidate's. What it tells is
sealed as `value`, and `rules.file_checks` decides.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from boxeval.graders.interface import Bench, BoxRun, Phase, seen_of
from boxeval.rules import json_values
from boxeval.rules.file_checks import TIMEOUT_MS, file_verdict
from boxeval.sandbox.job import Job
from boxeval.spec.checks import FileCheck
from boxeval.spec.graded import CheckSeen

ANSWER_BYTES = 64 * 1024
_MODULES = {
    "boxeval.rules.json_values": Path(json_values.__file__),
    "file_program": Path(__file__).with_name("file_program.py"),
}
_START = """
import json, sys, types
request = json.load(sys.stdin)
for name, source in request["modules"].items():
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(source, name, "exec"), module.__dict__)
sys.modules["file_program"].main(request["grader"], request["configuration"], request["memoryBytes"])
"""


class FileGrader:
    """One kind for all five; their types differ."""

    phase = Phase.SHELL

    def grade(self, check: FileCheck, bench: Bench) -> CheckSeen:
        """Run the program and read its answer."""
        configuration = check.configuration.model_dump(mode="json", by_alias=True)
        ran = look(bench, check.grader, configuration, ANSWER_BYTES)
        value = answer_of(ran.stdout)
        return seen_of(check, file_verdict(check, ran.result, value), box=ran.result, value=value)


def look(bench: Bench, grader: str, configuration: Mapping[str, Any], answer_bytes: int) -> BoxRun:
    """Have the program look at a file of the workspace. Its answer is at most so long."""
    request = {
        "modules": {name: path.read_text("utf-8") for name, path in _MODULES.items()},
        "grader": grader,
        "configuration": configuration,
        "memoryBytes": bench.memory_bytes // 4 * 3,
    }
    argv = ("python3", "-I", "-S", "-c", _START)
    stdin = json.dumps(request).encode()
    job = Job(argv, bench.environment(own_image=True), stdin=stdin, stdout_bytes=answer_bytes)
    return bench.run(job, TIMEOUT_MS, own_image=True)


def answer_of(stdout: bytes) -> dict[str, Any] | None:
    """The program's answer; None if it is none."""
    try:
        value = json_values.parse(stdout.decode("utf-8"))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
