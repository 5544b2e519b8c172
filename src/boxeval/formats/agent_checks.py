"""What no single task can tell of its agent: which one it is on each target, and what that one has."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic.alias_generators import to_camel

from boxeval.formats.faults import Fault, below
from boxeval.formats.paths import inner_fault
from boxeval.formats.place import show
from boxeval.formats.plugin_checks import plugin_faults, prompts_of
from boxeval.spec.suite import Runner, RunnerKind, Suite, Task

CLIO = (RunnerKind.CLIO_RUN, RunnerKind.CONTEXT_INDEX, RunnerKind.CONTEXT_INIT)
_OTHER_KINDS = {"command": ("command", "commands", "args", "stdin"), "reference": ("permissions", "options")}
"""Agents that are another kind by another name, and what they take that others do not."""
_BOTH = ("codex", "claude")
_HAVE = {
    **dict.fromkeys(("entrypoint", "invoke"), ("codex",)),
    **dict.fromkeys(("effort", "skills", "plugins", "fixture_configuration"), _BOTH),
}


def agent_faults(suite: Suite) -> Iterator[Fault]:
    """Agents that are not named, and settings that they do not have."""
    for index, task in enumerate(suite.tasks):
        for path, message in _task_faults(suite, task):
            yield ("tasks", index, *path), message


def _task_faults(suite: Suite, task: Task) -> Iterator[Fault]:
    runner = task.runner
    for name, path in (runner.host.artifacts if runner.host else {}).items():
        if fault := inner_fault(path):
            yield ("runner", "host", "artifacts", name), fault
    if runner.host:
        yield from below("runner", below("host", plugin_faults(runner.host, prompts_of(task))))
    if runner.kind in CLIO:
        yield from _image_faults(suite, task, "clio")
    if runner.kind is not RunnerKind.AGENT:
        return
    if runner.agent is not None:
        yield from _agent_faults(suite, task, runner, runner.agent)
        return
    for target in suite.matrix.targets:
        if target.agent is None:
            yield ("runner",), f"kind `agent` needs `agent`, here or at target {show(target.id)}"
            return
    for agent in dict.fromkeys(target.agent for target in suite.matrix.targets if target.agent):
        yield from _agent_faults(suite, task, runner, agent)


def _agent_faults(suite: Suite, task: Task, runner: Runner, agent: str) -> Iterator[Fault]:
    if agent == "clio":
        yield from _image_faults(suite, task, agent)
    for other, names in _OTHER_KINDS.items():
        for name in names if other != agent else ():
            if name in runner.model_fields_set:
                yield ("runner", to_camel(name)), f"agent `{agent}` does not take `{to_camel(name)}`"
    if agent in _OTHER_KINDS and runner.host is not None:
        yield ("runner", "host"), f"agent `{agent}` has no settings of a host"
    for name, agents in _HAVE.items():
        if runner.host and getattr(runner.host, name) and agent not in agents:
            yield ("runner", "host", to_camel(name)), f"agent `{agent}` has no `{to_camel(name)}`"


def _image_faults(suite: Suite, task: Task, agent: str) -> Iterator[Fault]:
    for target in suite.matrix.targets:
        if not (task.image or target.image or suite.defaults.image):
            yield ("runner",), f"`{agent}` needs `image`, one that has its CLI: boxeval has none of it"
            return
