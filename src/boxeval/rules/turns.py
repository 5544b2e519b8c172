"""The candidate's turns: the single one of most tasks, or one a step, told alike."""

from __future__ import annotations

from dataclasses import dataclass, replace

from boxeval.rules.chaos import injected_words
from boxeval.rules.endings import describe, ended_badly, ended_by_memory, limit_hit
from boxeval.spec.agent_record import TurnEnd, TurnRecord
from boxeval.spec.box import BoxResult, CommandResult
from boxeval.spec.outcome import FailureClass
from boxeval.spec.plan import PlannedStep, PlannedTask
from boxeval.spec.trial import Collected, Enforcement, Observations

_TAKEN_AWAY = ("cwd:", "fork:")


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn as it was seen. `name` is for people; `step` is None for a single turn."""

    name: str
    box: BoxResult | None
    collected: Collected | None
    enforced: Enforcement | None
    deadline_ms: int
    writes: tuple[str, ...] | None
    step: PlannedStep | None = None
    verify: BoxResult | None = None
    is_first: bool = True


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A turn that did not end well by the candidate's doing."""

    failure: FailureClass
    limit: str | None
    detail: str


def turns(task: PlannedTask, seen: Observations) -> tuple[Turn, ...]:
    """The turns that began, in order. A record of steps that are not the planned ones has none."""
    if not task.steps:
        single = Turn("agent", seen.agent, seen.collected, seen.enforced, task.agent_timeout_ms, task.writes)
        return (single,)
    pairs = tuple(zip(task.steps, seen.steps, strict=False))
    if len(seen.steps) > len(task.steps) or any(step.id != found.id for step, found in pairs):
        return ()
    return tuple(
        Turn(
            f"step {step.id}",
            found.agent,
            found.collected,
            found.enforced,
            step.timeout_ms,
            step.writes,
            step,
            found.verify,
            number == 0,
        )
        for number, (step, found) in enumerate(pairs)
    )


def has_boundary(turn: Turn) -> bool:
    """Whether a verdict on the write boundary is due: for each step, and for a single turn with `writes`."""
    return turn.step is not None or turn.writes is not None


def unfinished(task: PlannedTask, seen: Observations) -> Unfinished | None:
    """The first turn that did not end well; it is also the last that ran."""
    for turn in turns(task, seen):
        if turn.box and ended_by_memory(turn.box):
            text = f"{turn.name} used up its memory, and the kernel ended its box"
            return Unfinished(FailureClass.OOM, "memory", text)
        if turn.box and (bad := ended_badly(turn.box)):
            found = _unfinished(turn, turn.box, *bad, seen)
            injected = injected_words(task, turn.box)
            return replace(found, detail=f"{found.detail}; {injected}") if injected else found
        if (said := record_of(turn, seen)) and said.end is not TurnEnd.COMPLETED:
            return Unfinished(FailureClass.RUNNER_FAILED, None, f"{turn.name}: {said.reason}")
    return None


def record_of(turn: Turn, seen: Observations) -> TurnRecord | None:
    """What an agent of others said of this turn."""
    records = seen.agent_record.turns if seen.agent_record else ()
    name = turn.step.id if turn.step else turn.name
    return next((record for record in records if record.turn == name), None)


def _unfinished(
    turn: Turn, box: BoxResult, number: int, command: CommandResult, seen: Observations
) -> Unfinished:
    name = f"{turn.name}'s command {number}" if len(box.commands) > 1 else turn.name
    if command.timed_out:
        text = f"{name} passed its deadline of {turn.deadline_ms} ms and was killed"
        return Unfinished(FailureClass.TIMEOUT, "agent", text)
    text = f"{name} {describe(command)}"
    if limit := limit_hit(box, command):
        failure = FailureClass.OOM if limit == "memory" else FailureClass.RESOURCE_LIMIT
        return Unfinished(failure, limit, f"{text}; it hit the limit of its policy on {limit}")
    if seen.traffic and seen.traffic.limit:
        text += f"; it hit the limit of its policy on its model: {seen.traffic.limit}"
        return Unfinished(FailureClass.RESOURCE_LIMIT, "model", text)
    if seen.traffic and seen.traffic.error:
        text += f"; model: {seen.traffic.error}"
    return Unfinished(FailureClass.RUNNER_FAILED, None, text)


def self_inflicted(is_later: bool, command: CommandResult) -> bool:
    """Whether a later command could not start by the candidate's own doing.

    It has taken the working directory away, or left no process to be had.
    """
    return is_later and (command.spawn_error or "").startswith(_TAKEN_AWAY)
