"""Which agent runs which kind of runner."""

from __future__ import annotations

from boxeval.agents.external_command import ExternalCommand
from boxeval.agents.interface import Agent
from boxeval.agents.scripted import ReferenceAgent
from boxeval.spec.suite import RunnerKind

AGENTS: dict[RunnerKind, Agent] = {
    RunnerKind.EXTERNAL_COMMAND: ExternalCommand(),
    RunnerKind.SCRIPTED: ReferenceAgent(),
}


def agent_for(kind: RunnerKind) -> Agent:
    """The agent of a runner kind; every kind has one."""
    return AGENTS[kind]
