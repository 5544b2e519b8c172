"""Which agent runs which kind of runner."""

from __future__ import annotations

from boxeval.agents.external_command import ExternalCommand
from boxeval.agents.hosts import host_of
from boxeval.agents.interface import Agent
from boxeval.agents.scripted import JOURNAL, ReferenceAgent
from boxeval.spec.plan import PlannedTask
from boxeval.spec.suite import RunnerKind

AGENTS: dict[RunnerKind, Agent] = {
    RunnerKind.EXTERNAL_COMMAND: ExternalCommand(),
    RunnerKind.SCRIPTED: ReferenceAgent(),
}


def agent_for(kind: RunnerKind) -> Agent:
    """The agent of a runner kind that needs no adapter of `boxeval.agents.hosts`."""
    return AGENTS[kind]


def keeps_state(task: PlannedTask) -> bool:
    """Whether boxeval reads something out of the home when the task's turns are over."""
    return host_of(task.runner) is not None or journal_of(task) is not None


def journal_of(task: PlannedTask) -> str | None:
    """Where the agent of a task keeps a session ledger that boxeval reads, in its home; None if it keeps none."""
    runners = [step.runner for step in task.steps] or [task.runner]
    return JOURNAL if any(runner.kind is RunnerKind.SCRIPTED for runner in runners) else None
