"""One trial from its plan to its record: a fold of the seven steps. A failure is a value in the record.

stage, run, settle, collect, enforce, grade, seal. A task with steps goes through the first five for each of them.
Forbidden paths are enforced by the rules, from what was collected; a receipt is made of the record by the ledger
(`boxeval.run`).
"""

from __future__ import annotations

import time

from boxeval.agents.registry import journal_of
from boxeval.errors import EngineError, FixtureError
from boxeval.receipts.ledger import utc_now
from boxeval.rules.message import printed_message
from boxeval.rules.metrics import measure
from boxeval.rules.verdict import decide
from boxeval.spec.journal import Journal
from boxeval.spec.outcome import FailureClass
from boxeval.spec.plan import PlannedTask, PlannedTrial
from boxeval.spec.trial import Observations, SetupFault, Trial
from boxeval.trial.bench import base_head
from boxeval.trial.cancel import Cancelled
from boxeval.trial.context import Steps, TrialContext
from boxeval.trial.fault import StageFault
from boxeval.trial.fixtures import FixtureRef
from boxeval.trial.grade import grade
from boxeval.trial.journal import collect_journal
from boxeval.trial.retained import retain
from boxeval.trial.sequence import Sequence
from boxeval.trial.stage import stage_fixture, staged, turns_of
from boxeval.trial.turn import ModelRoute


def run_trial(context: TrialContext) -> Trial:
    """Run one trial. Only our own faults and faults of storage are raised."""
    started_at = utc_now()
    began = time.monotonic_ns()
    seen = _observe(context)
    wall_ms = (time.monotonic_ns() - began) // 1_000_000
    return _seal(context.planned, context.task, context.steps, seen, started_at, wall_ms)


def seal_unstarted(planned: PlannedTrial, task: PlannedTask, steps: Steps, seen: Observations) -> Trial:
    """The record of a trial that did not get as far as a box."""
    return _seal(planned, task, steps, seen, utc_now(), 0)


def _seal(
    planned: PlannedTrial, task: PlannedTask, steps: Steps, seen: Observations, started_at: str, wall_ms: int
) -> Trial:
    metrics = measure(task, seen, wall_ms)
    return Trial(
        trial_id=planned.trial_id,
        task=planned.task,
        target=planned.target,
        repeat=planned.repeat,
        identity=task.identity,
        started_at=started_at,
        wall_ms=wall_ms,
        steps_ms=steps.took_ms,
        observations=seen,
        metrics=metrics,
        outcome=decide(task, seen, metrics),
    )


def _observe(context: TrialContext) -> Observations:
    seen = Observations()
    try:
        with context.steps.step("stage"):
            fixture = stage_fixture(context)
            extension = context.extensions.open(context, fixture)
            if extension and (cannot_begin := extension.faulty()):
                return cannot_begin
            fixture = extension.prepared(fixture) if extension else fixture
            base = base_head(context, fixture)
        if context.task.dry:
            return _prepared(context, fixture)
        route = ModelRoute(context)
        turns = Sequence(context, fixture, route)
        try:
            turns.take()
        finally:
            # Whatever became of the turns, this was asked and is billed.
            traffic = route.close()
            seen = seen.model_copy(update=traffic)
        seen = turns.observations().model_copy(update=traffic)
        seen = seen.model_copy(update={"journal": _journal(context, turns)})
        if seen.agent_record and turns.is_settled:
            seen = seen.model_copy(update={"agent_record": retain(context, seen.agent_record)})
        if seen.agent_record is None:
            seen = seen.model_copy(update={"message": printed_message(context.task, seen)})
        if seen.cancelled or not turns.is_gradable:
            return seen
        with context.steps.step("grade"):
            return grade(context, fixture, turns.layers, seen, base, extension)
    except StageFault as error:
        return seen.model_copy(update={"fault": error.fault})
    except FixtureError as error:
        # It was good when the run was planned, so somebody writes to its files.
        fault = SetupFault(failure_class=FailureClass.SETUP_FAILED, detail=str(error)[:300])
        return seen.model_copy(update={"fault": fault})
    except Cancelled:
        return seen.model_copy(update={"cancelled": True})
    except EngineError as error:
        if context.cancel.is_set:
            return seen.model_copy(update={"cancelled": True})
        fault = SetupFault(failure_class=FailureClass.COMMAND_ERROR, detail=str(error)[:300])
        return seen.model_copy(update={"fault": fault})


def _journal(context: TrialContext, turns: Sequence) -> Journal | None:
    path = journal_of(context.task)
    return collect_journal(context, path) if path and turns.is_settled else None


def _prepared(context: TrialContext, fixture: FixtureRef) -> Observations:
    """A dry run: the candidate's box is made too, and goes without having been started."""
    with staged(context, fixture, turns_of(context.task)[0], ()):
        pass
    return Observations(fixture=fixture.digest, fixture_notes=fixture.notes, cancelled=context.cancel.is_set)
