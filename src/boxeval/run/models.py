"""The models that a run uses: planned with place, price and cassette, and what the gateway needs to serve them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from boxeval.errors import UsageError
from boxeval.formats.suite_v2 import LoadedSuite
from boxeval.gateway.cassette import Cassette, Recorder, read_cassette
from boxeval.gateway.keyring import Keyring, read_keyring
from boxeval.gateway.prices import priced
from boxeval.gateway.sources import Sources
from boxeval.rules.providers import place_of
from boxeval.run.codex_auth import key_in
from boxeval.run.events import RunRequest
from boxeval.settings import Settings
from boxeval.spec.models import (
    Model,
    PlannedModel,
    PlannedUpstream,
    ReplayModel,
    UpstreamModel,
)
from boxeval.spec.suite import Suite, Target, Task


@dataclass(frozen=True, slots=True)
class PreparedModels:
    """Models by name, scripts of tasks by `task:ID`; keys were looked up, and cassettes read."""

    planned: Mapping[str, PlannedModel]
    keyring: Keyring
    cassettes: Mapping[str, Cassette]

    def sources(self, record: Path | None) -> Sources:
        """What the gateway serves them from; makes the cassette that is to be recorded."""
        redactor = self.keyring.redactor()
        recorder = None if record is None else Recorder(record, redactor)
        return Sources(self.keyring, self.cassettes, recorder, redactor)


def prepare_models(
    loaded: LoadedSuite, pairs: Sequence[tuple[Task, Target]], request: RunRequest, settings: Settings
) -> PreparedModels:
    """Raises `UsageError` for a key that is not there or may not go where the model is, or a bad cassette."""
    auth = request.case.codex_auth_file if request.case else None
    environ = {**os.environ, **(key_in(auth) if auth else {})}
    keyring = read_keyring(request.keyring_file or settings.keyring_file, environ)
    models, planned = loaded.suite.models, dict[str, PlannedModel](loaded.scripts)
    cassettes: dict[str, Cassette] = {}
    used = [(task, name) for task, target in pairs for name in _names(loaded.suite, task, target, request)]
    for name in dict.fromkeys(name for _, name in used):
        model = models.get(name)
        if isinstance(model, UpstreamModel):
            planned[name] = priced(place_of(model), model)
        elif isinstance(model, ReplayModel):
            cassette = read_cassette(loaded.directory / model.replay)
            cassettes[cassette.sha256] = cassette
            planned[name] = cassette.planned(model.ignore)
    for task, name in used:
        for secret in task.secrets:
            # Offline nobody needs it, but who has it does not want to see it.
            if isinstance(planned.get(name), PlannedUpstream) or keyring.has(secret):
                keyring.get(secret)
        _check_key(task, name, models.get(name), planned.get(name), keyring)
    if request.record is not None and not any(
        isinstance(model, PlannedUpstream) for model in planned.values()
    ):
        raise UsageError("--record: no model of this run is a real one, so there is nothing to record")
    return PreparedModels(planned, keyring, cassettes)


def _names(suite: Suite, task: Task, target: Target, request: RunRequest) -> tuple[str, ...]:
    """The models that a trial may ask: its candidate's and its judge's."""
    model = request.model or target.model or suite.defaults.model
    judge = request.judge or task.verify.judge or suite.defaults.judge
    return tuple(name for name in (model, judge) if name is not None)


def refuse_upstream(planned: Mapping[str, PlannedModel]) -> None:
    """Raise `UsageError` if a model must be asked over a network, which the operator has not allowed."""
    for name, model in planned.items():
        if isinstance(model, PlannedUpstream):
            raise UsageError(
                f"model {name}: {model.base_url} is asked over a network; allow it with --allow-network "
                "(for the gateway, and no box)"
            )


def _check_key(
    task: Task, name: str, model: Model | None, planned: PlannedModel | None, keyring: Keyring
) -> None:
    if (
        not isinstance(model, UpstreamModel)
        or not isinstance(planned, PlannedUpstream)
        or planned.key is None
    ):
        return
    if model.key is not None and model.key not in task.secrets:
        raise UsageError(f"task {task.id}: model {name} needs the key {model.key}; name it in `secrets`")
    keyring.key_for(planned.key, planned.base_url)
