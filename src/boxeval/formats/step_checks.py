"""What pydantic cannot say about the turns of a task: one runner or steps, and what they may write."""

from __future__ import annotations

from collections.abc import Iterator

from boxeval.formats.boundaries import Boundaries, fixture_faults, inline_entries, writes_faults
from boxeval.formats.faults import Fault, below, commands_faults, files_faults, patterns_faults, text_faults
from boxeval.formats.place import show
from boxeval.spec.suite import RunnerKind, Step, Task
from boxeval.spec.workspace import WorkspaceKind

_OF_ONE_TURN = ("command", "commands", "args", "prompt", "stdin")
"""What a runner says of its only turn, and steps say for themselves."""
_ASKED = (RunnerKind.SCRIPTED, RunnerKind.AGENT, RunnerKind.CLIO_RUN)


def step_faults(task: Task) -> Iterator[Fault]:
    """Everything wrong with `steps`, `writes` and `protect`."""
    if not task.steps and "runner" not in task.model_fields_set:
        yield (), "key `runner` is missing; a task has it, or `steps`"
    for name in _OF_ONE_TURN if task.steps else ():
        if name in task.runner.model_fields_set:
            yield ("runner", name), f"`{name}` cannot stand beside `steps`, which have their own"
    seen: dict[str, int] = {}
    for number, step in enumerate(task.steps):
        yield from below("steps", below(number, _step_faults(task, step)))
        if (first := seen.setdefault(step.id.casefold(), number)) != number:
            yield ("steps", number, "id"), f"{show(step.id)} is already the id of steps[{first}]"
    yield from _boundary_faults(task)


def _boundary_faults(task: Task) -> Iterator[Fault]:
    """What is wrong by itself, else what does not fit the files, if these are in the suite."""
    found = list(below("writes", writes_faults(task.writes or ())))
    for number, step in enumerate(task.steps):
        found += below("steps", below(number, below("writes", writes_faults(step.writes or ()))))
    found += patterns_faults("protect", task.protect)
    workspace = task.workspace
    if not found and workspace.kind is WorkspaceKind.INLINE and not workspace.setup:
        found += fixture_faults(Boundaries.of(task), inline_entries(workspace.files or {}))
    yield from found


def _step_faults(task: Task, step: Step) -> Iterator[Fault]:
    if step.id in (".", ".."):
        yield ("id",), f"{show(step.id)} cannot be an id"
    if (step.prompt is None) == (step.command is None):
        yield (), "needs exactly one of `prompt` and `command`"
    elif step.prompt is not None:
        yield from _prompt_faults(task, step.prompt)
    yield from below("command", text_faults(step.command or ""))
    if step.verify is not None:
        yield from below("verify", commands_faults("commands", step.verify.commands))
        yield from below("verify", below("files", files_faults(step.verify.files)))


def _prompt_faults(task: Task, prompt: str) -> Iterator[Fault]:
    if not prompt.strip():
        yield ("prompt",), "is empty"
    if "runner" in task.model_fields_set and task.runner.kind not in _ASKED:
        yield (
            ("prompt",),
            f"needs a runner of kind `scripted` or `agent`, and this task has `{task.runner.kind}`",
        )
    yield from below("prompt", text_faults(prompt))
