"""Reference checks of a suite: its own solutions end as it says, and a candidate that does nothing does not pass."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from boxeval.errors import UsageError
from boxeval.formats.references import has_reference
from boxeval.formats.suite_v2 import load_suite
from boxeval.receipts.trust import Trust
from boxeval.receipts.verify import verify
from boxeval.run.controller import run_suite
from boxeval.run.events import RunRequest, Watcher
from boxeval.run.signals import Interrupted, Signals
from boxeval.settings import Settings
from boxeval.spec.outcome import FailureClass, TaskState, Weight
from boxeval.spec.report import TrialLine
from boxeval.verdicts.aggregate import aggregate

_NOTHING = "a candidate that does nothing"


@dataclass(frozen=True, slots=True)
class Checked:
    """What became of one task with one candidate. `good` is None if nothing could be said."""

    key: str
    good: bool | None
    detail: str


def check_references(
    suite: Path, watcher: Watcher, settings: Settings, signals: Signals, jobs: int | None = None
) -> tuple[Checked, ...]:
    """Run the reference solutions once each, then an idle candidate in place of each that should pass.

    The runs lie in a temporary directory, which goes. Raises as `run_suite` does, and `UsageError` if the suite has
    no solution of its own.
    """
    loaded = load_suite(suite)
    tasks = [task for task in loaded.suite.tasks if has_reference(task)]
    if not tasks:
        raise UsageError(f"{suite}: no task has a solution of its own: commands, or a script")
    first = loaded.suite.matrix.targets[0].id
    request = RunRequest(suite, jobs=jobs, targets=(first,), repeats=1)
    solvable = [task.id for task in tasks if task.expect != "failed"]
    with tempfile.TemporaryDirectory(prefix="boxeval-check-") as place:
        found = list(
            _solved(_lines(request, [t.id for t in tasks], Path(place, "a"), watcher, settings, signals))
        )
        if solvable:
            idle = _lines(request, solvable, Path(place, "b"), watcher, settings, signals, idle=True)
            found += _unsolved(idle)
    return tuple(found)


def _lines(
    request: RunRequest,
    tasks: Sequence[str],
    place: Path,
    watcher: Watcher,
    settings: Settings,
    signals: Signals,
    *,
    idle: bool = False,
) -> tuple[TrialLine, ...]:
    asked = RunRequest(
        request.suite, place, request.jobs, request.targets, tuple(tasks), repeats=request.repeats, idle=idle
    )
    end = run_suite(asked, watcher, settings, signals)
    if end.interrupted_by:
        raise Interrupted(end.interrupted_by)
    return aggregate(verify(end.directory, Trust.local(settings), checkpoint=end.checkpoint)).trials


def _solved(lines: Sequence[TrialLine]) -> Iterator[Checked]:
    for line in lines:
        wanted = "fails as it says" if line.expect == "failed" else "passes"
        ended = f"ends {line.outcome.task}: {line.outcome.detail or line.outcome.failure_class or 'nothing is graded'}"
        good = line.as_expected
        yield Checked(line.key, good, f"its own solution {wanted if good else ended}")


def _unsolved(lines: Sequence[TrialLine]) -> Iterator[Checked]:
    for line in lines:
        outcome = line.outcome
        says_nothing = outcome.failure_class is FailureClass.EVIDENCE_MISSING
        if outcome.weight is Weight.VOID and not says_nothing:
            yield Checked(line.key, None, f"{_NOTHING} ends void: {outcome.detail}")
        elif outcome.task is TaskState.PASSED:
            yield Checked(line.key, False, f"{_NOTHING} passes")
        else:
            yield Checked(
                line.key, True, f"{_NOTHING} {'has no evidence' if says_nothing else 'does not pass'}"
            )
