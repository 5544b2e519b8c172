"""All agents of others by their names."""

from __future__ import annotations

from boxeval.agents import aider, claude, clio, codex, gemini, mini_swe_agent, opencode
from boxeval.agents.host import Host
from boxeval.spec.suite import Runner, RunnerKind

HOSTS: dict[str, Host] = {
    host.name: host
    for host in (codex.HOST, claude.HOST, gemini.HOST, opencode.HOST, mini_swe_agent.HOST, aider.HOST)
}
"""Those that boxeval has an image of."""

_CLIO = {
    RunnerKind.CLIO_RUN: clio.RUN,
    RunnerKind.CONTEXT_INDEX: clio.INDEX,
    RunnerKind.CONTEXT_INIT: clio.INIT,
}


def host_of(runner: Runner) -> Host | None:
    """The agent of others whose turn this is, if it is one's."""
    if runner.agent == clio.RUN.name:
        return clio.RUN
    return _CLIO.get(runner.kind) or HOSTS.get(runner.agent or "")
