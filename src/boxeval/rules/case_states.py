"""How the states of trials become those of a case, of a run, and an exit code (contract G59, G61, G62)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from boxeval.spec.case_result import States
from boxeval.spec.outcome import Execution, Grading, TaskState

INVALID = 64
"""Exit code for what keeps a run from being one."""
_EXECUTION = (Execution.FAILED, Execution.CANCELLED, Execution.NOT_RUN, Execution.COMPLETED)
_GRADING = (Grading.ERROR, Grading.UNAVAILABLE, Grading.NOT_REQUESTED, Grading.COMPLETED)
UNSEEN = States(execution=Execution.NOT_RUN, grading=Grading.NOT_REQUESTED, task=TaskState.NOT_ASSESSED)
"""Of a trial without a receipt, and of no trial at all."""


def case_states(trials: Sequence[States], threshold: float) -> States:
    """A case passes if enough of its trials did; one that is not assessed leaves it not assessed.

    Execution and grading are the worst of the trials'.
    """
    verdicts = [trial.task for trial in trials]
    task = TaskState.NOT_ASSESSED
    if verdicts and TaskState.NOT_ASSESSED not in verdicts:
        passed = Fraction(verdicts.count(TaskState.PASSED), len(verdicts))
        # As it was written: 0.1 means a tenth, and not the binary number next to it.
        task = TaskState.PASSED if passed >= Fraction(repr(threshold)) else TaskState.FAILED
    return _worst(trials, task)


def run_states(cases: Sequence[States]) -> States:
    """A run fails if a case does; else one case that is not assessed leaves it not assessed."""
    verdicts = [case.task for case in cases]
    order = (TaskState.FAILED, TaskState.NOT_ASSESSED, TaskState.PASSED)
    return _worst(cases, next((task for task in order if task in verdicts), TaskState.NOT_ASSESSED))


def exit_code(run: States, *, prepared: bool = False, signal: int | None = None) -> int:
    """The exit code of a run that was persisted: signal, execution, grading, evidence, verdict, in that order.

    `prepared`: it was a dry run, and everything that it looked at was good.
    """
    if signal is not None:
        return 128 + signal
    if run.execution is not Execution.COMPLETED and not prepared:
        return 2
    by_grading = {Grading.ERROR: 3, Grading.UNAVAILABLE: 4}
    return by_grading.get(run.grading, 1 if run.task is TaskState.FAILED else 0)


def _worst(parts: Sequence[States], task: TaskState) -> States:
    executions, gradings = {part.execution for part in parts}, {part.grading for part in parts}
    return States(
        execution=next((one for one in _EXECUTION if one in executions), Execution.NOT_RUN),
        grading=next((one for one in _GRADING if one in gradings), Grading.NOT_REQUESTED),
        task=task,
    )
