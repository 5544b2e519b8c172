"""Whether a run can go on with what is there now: the plan made again must be the one that was recorded."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator
from typing import Any

from boxeval.spec.plan import Plan

SHOWN = 60
"""Characters of a value."""
ABSENT = "absent"


def differences(recorded: Plan, now: Plan, remaining: Container[tuple[str, str]]) -> tuple[str, ...]:
    """What differs, one line each: where, what it was, what it is. Empty if the run can go on.

    The suite's own bytes do not count, for everything that follows from them does; a comment may change. Nor do
    the files of tasks that are not `remaining`, by name and target: a trial that passed may have written them back.
    """
    was, is_now = dict(_facts(recorded, remaining)), dict(_facts(now, remaining))
    return tuple(
        f"{place} was {_shown(was.get(place))}, is {_shown(is_now.get(place))}"
        for place in dict.fromkeys((*was, *is_now))
        if was.get(place) != is_now.get(place)
    )


def _facts(plan: Plan, remaining: Container[tuple[str, str]]) -> Iterator[tuple[str, Any]]:
    tree: dict[str, Any] = plan.model_dump(mode="json", by_alias=True)
    tree["suite"].pop("sha256")
    for task in tree.pop("tasks"):
        task.pop("identity")  # a digest of what is compared here by name
        if (task["task"], task["target"]) not in remaining:
            task.pop("fixtureRecipe")
        yield from _leaves(f"task {task['task']}[{task['target']}]", task)
    for trial in tree.pop("trials"):
        yield f"trial {trial['task']}[{trial['target']}]#{trial['repeat']}", trial["trialId"]
    for name, value in tree.items():
        yield from _leaves(name, value)


def _leaves(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _leaves(f"{place}.{name}", inner)
    elif isinstance(value, list) and value:
        for number, inner in enumerate(value, 1):
            yield from _leaves(f"{place}.{number}", inner)
    else:
        yield place, value


def _shown(value: Any) -> str:
    text = ABSENT if value is None else json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
