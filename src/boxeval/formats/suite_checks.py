"""What no single task can tell: ids beside each other, and names that must resolve."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from boxeval.formats.agent_checks import agent_faults
from boxeval.formats.faults import Fault, env_faults
from boxeval.formats.lint import forgeable
from boxeval.formats.place import dotted, show
from boxeval.formats.task_checks import assertion_faults, task_faults
from boxeval.rules.providers import place_of
from boxeval.rules.selection import asks_a_model
from boxeval.spec.metrics import did_you_mean
from boxeval.spec.models import ReplayModel, UpstreamModel
from boxeval.spec.suite import Suite

MAX_TRIALS = 100_000
_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?{_PART}(?:/{_PART})*(?::\w[\w.-]{{0,127}})?(?:@sha256:[0-9a-f]{{64}})?"
    r"|sha256:[0-9a-f]{64}",
    re.ASCII,
)
"""A reference by the grammar of the distribution project, or an image's id."""


def suite_faults(suite: Suite) -> Iterator[Fault]:
    """Everything wrong with a suite whose parts are well-typed, files that it names aside."""
    yield from _ids(suite)
    for index, target in enumerate(suite.matrix.targets):
        yield from (
            (("matrix", "targets", index, "env", *path), message) for path, message in env_faults(target.env)
        )
    yield from _models(suite)
    yield from agent_faults(suite)
    yield from _images(suite)
    for index, task in enumerate(suite.tasks):
        yield from ((("tasks", index, *path), message) for path, message in task_faults(task))
    verifies = [task.verify for task in suite.tasks]
    for index, assertion in enumerate(suite.thresholds.fail):
        faults = assertion_faults(assertion, *verifies)
        yield from ((("thresholds", "fail", index, *path), message) for path, message in faults)
    trials = sum(task.trials or suite.matrix.repeats for task in suite.tasks) * len(suite.matrix.targets)
    if trials > MAX_TRIALS:
        yield ("matrix",), f"asks for {trials} trials; a run has at most {MAX_TRIALS}"


def suite_warnings(suite: Suite) -> Iterator[Fault]:
    """Right, and yet surely not what was meant."""
    for index, task in enumerate(suite.tasks):
        yield from ((("tasks", index, *path), message) for path, message in forgeable(task))


def _ids(suite: Suite) -> Iterator[Fault]:
    yield from _dots([(("suite", "id"), suite.suite.id)])
    targets = [(("matrix", "targets", i, "id"), target.id) for i, target in enumerate(suite.matrix.targets)]
    tasks = [(("tasks", i, "id"), task.id) for i, task in enumerate(suite.tasks)]
    for ids in (targets, tasks):
        yield from _dots(ids)
        seen: dict[str, Fault] = {}
        for path, name in ids:
            first, taken = seen.setdefault(name.casefold(), (path, name))
            if first != path:
                case = "" if taken == name else ", but for upper and lower case"
                yield path, f"{show(name)} is already the id of {dotted(first[:-1])}{case}"


def _dots(ids: Iterable[Fault]) -> Iterator[Fault]:
    for path, name in ids:
        if name in (".", ".."):
            yield path, f"{show(name)} cannot be an id"


def _images(suite: Suite) -> Iterator[Fault]:
    named: list[tuple[tuple[str | int, ...], str | None]] = [(("defaults", "image"), suite.defaults.image)]
    named += [(("matrix", "targets", i, "image"), t.image) for i, t in enumerate(suite.matrix.targets)]
    for i, task in enumerate(suite.tasks):
        named += [(("tasks", i, "image"), task.image), (("tasks", i, "verify", "image"), task.verify.image)]
    for path, name in named:
        if name is not None and not _IMAGE.fullmatch(name):
            yield path, f"{show(name)} cannot be an image; write `name`, `host/name:tag` or `name@sha256:...`"


def _models(suite: Suite) -> Iterator[Fault]:
    for key, model in suite.models.items():
        if isinstance(model, UpstreamModel):
            try:
                place_of(model)
            except ValueError as error:
                yield ("models", key, "upstream"), f"{show(model.upstream)} {error}"
        elif isinstance(model, ReplayModel):
            for place, pointer in enumerate(model.ignore):
                if not pointer.startswith("/"):
                    yield (
                        ("models", key, "ignore", place),
                        f"{show(pointer)} is no JSON pointer; it begins with /",
                    )
    named: list[tuple[tuple[str | int, ...], str | None]] = [(("defaults", "model"), suite.defaults.model)]
    named += [
        (("matrix", "targets", i, "model"), target.model) for i, target in enumerate(suite.matrix.targets)
    ]
    named.append((("defaults", "judge"), suite.defaults.judge))
    named += [(("tasks", i, "verify", "judge"), task.verify.judge) for i, task in enumerate(suite.tasks)]
    for path, name in named:
        if name is not None and name not in suite.models:
            hint = did_you_mean(name, suite.models) or ("" if suite.models else "; the suite has no `models`")
            yield path, f"there is no model {show(name)}{hint}"
    lacking = [target.id for target in suite.matrix.targets if not (target.model or suite.defaults.model)]
    for index, task in enumerate(suite.tasks):
        if asks_a_model(task) and task.runner.script is None and lacking:
            who = "a prompt" if task.steps else f"kind `{task.runner.kind}`"
            message = f"{who} needs `script`, or a model, and target {show(lacking[0])} has none"
            yield ("tasks", index, "steps" if task.steps else "runner"), message
