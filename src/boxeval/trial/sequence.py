"""The turns of a trial, one after another: run, settle, collect, enforce, check. The first that fails is the last."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from boxeval.agents.hosts import host_of
from boxeval.errors import NoRoom
from boxeval.rules.endings import ended_badly
from boxeval.spec.agent_record import AgentRecord, TurnEnd
from boxeval.spec.box import BoxResult
from boxeval.spec.trial import Collected, Observations, SetupFault, StepSeen
from boxeval.trial.agent_turn import DID_NOT_RUN, Said
from boxeval.trial.collect import RECORD_BYTES, collect, collect_step
from boxeval.trial.context import TrialContext
from boxeval.trial.enforce import enforce
from boxeval.trial.fixtures import FixtureRef
from boxeval.trial.grade import check_step
from boxeval.trial.stage import Staged, staged, turns_of
from boxeval.trial.turn import ModelRoute, missing_directory, take_turn


class Sequence:
    """Takes the turns of one trial and keeps what was seen of them. `layers` are what they wrote, topmost first."""

    def __init__(self, context: TrialContext, fixture: FixtureRef, route: ModelRoute) -> None:
        self._context, self._fixture, self._route = context, fixture, route
        self._seen: list[StepSeen] = []
        self._said: list[Said] = []
        self._fault: SetupFault | None = None
        self._whole: Collected | None = None
        self._recorded_bytes = 0
        self.layers: tuple[str, ...] = ()
        self.is_gradable = True

    def take(self) -> None:
        """Take turns until one is not as it should be, or there are no more."""
        for turn in turns_of(self._context.task):
            with ExitStack() as box:
                try:
                    ready = box.enter_context(staged(self._context, self._fixture, turn, self.layers))
                except NoRoom:
                    if not self._seen:
                        raise
                    self._whole, self.is_gradable = Collected(limit=f"no room is left for {turn.name}"), False
                    break
                if not self._turn(ready):
                    break
        if self.layers and self._whole is None:
            with self._context.steps.step("collect"):
                self._whole = collect(self._context, self._fixture, self.layers)
                self.is_gradable &= not (self._whole.limit or self._whole.error)

    @property
    def is_settled(self) -> bool:
        """Whether nothing of any turn is alive."""
        return all(seen.agent.settled for seen in self._seen)

    def observations(self) -> Observations:
        """The evidence so far, without the model's traffic and the grades."""
        only, *_ = self._seen
        turns: dict[str, Any] = {"agent": only.agent, "enforced": only.enforced}
        if self._context.task.steps:
            turns = {"steps": tuple(self._seen)}
        if host := host_of(self._context.task.runner):
            record = AgentRecord(host=host.id, turns=tuple(said.record for said in self._said))
            turns |= {
                "agent_record": record,
                "message": self._said[-1].message if self._said else DID_NOT_RUN,
            }
        return Observations(
            fixture=self._fixture.digest,
            fixture_notes=self._fixture.notes,
            collected=self._whole,
            fault=self._fault,
            cancelled=self._context.cancel.is_set,
            **turns,
        )

    def _turn(self, ready: Staged) -> bool:
        """One turn. Whether the next one may follow."""
        context, turn, steps = self._context, ready.turn, self._context.steps
        before = self._said[-1].record if self._said else None
        agent, said = take_turn(context, ready, self._route, before)
        if said:
            self._said.append(said)
        seen = StepSeen(id=turn.step.id if turn.step else turn.name, agent=agent)
        self._fault = missing_directory(ready, agent)
        if context.cancel.is_set or self._fault or not _trustworthy(agent):
            return self._end(seen)
        with steps.step("collect"):
            if turn.step:
                collected = collect_step(context, self._fixture, turn.layer, self.layers)
            else:
                collected = self._whole = collect(context, self._fixture, (turn.layer,))
            seen = seen.model_copy(update={"collected": collected})
        with steps.step("enforce"):
            enforced = enforce(context, ready, collected, self._seen)
            seen = seen.model_copy(update={"enforced": enforced})
            self._recorded_bytes += len(seen.model_dump_json())
            if self._recorded_bytes > RECORD_BYTES:
                collected = Collected(limit=f"more than {RECORD_BYTES} bytes to record")
                enforced = enforce(context, ready, collected, self._seen)
                seen = seen.model_copy(update={"collected": collected, "enforced": enforced})
        self.layers = (turn.layer, *self.layers)
        if collected.limit or collected.error:
            self._whole = collected
            return self._end(seen)
        finished = all(command.exit_code == 0 for command in agent.commands)
        finished &= said is None or said.record.end is TurnEnd.COMPLETED
        if not finished:
            return self._end(seen, context.task.verify.grade_incomplete)
        if enforced and enforced.boundary and enforced.boundary.violations:
            return self._end(seen, is_gradable=True)
        if turn.step and turn.step.verify:
            with steps.step("grade"):
                check = check_step(context, self._fixture, self.layers, turn)
            seen = seen.model_copy(update={"verify": check})
            if not _trustworthy(check) or ended_badly(check):
                return self._end(seen)
        self._seen.append(seen)
        return True

    def _end(self, seen: StepSeen, is_gradable: bool = False) -> bool:
        self._seen.append(seen)
        self.is_gradable = is_gradable
        return False


def _trustworthy(box: BoxResult) -> bool:
    return box.settled and not box.differences and not box.error
