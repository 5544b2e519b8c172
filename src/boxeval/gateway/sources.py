"""From a planned model to one that answers: what a run has for its models, keys and cassettes among it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from boxeval.gateway.cassette import Cassette, Recorder
from boxeval.gateway.interface import Answer, Model, Question, RequestError
from boxeval.gateway.keyring import Keyring, Secret
from boxeval.gateway.redact import NONE, Redactor
from boxeval.gateway.replay import ReplayModel
from boxeval.gateway.scripted import ScriptedModel
from boxeval.gateway.upstream import UpstreamModel
from boxeval.rules.providers import wires_of
from boxeval.spec.models import PlannedModel, PlannedReplay, PlannedUpstream, Script

SCRIPTED = "scripted"
"""The name of a scripted model."""


@dataclass(frozen=True, slots=True)
class Sources:
    """`keyring` has the keys of all planned models; `cassettes` go by digest."""

    keyring: Keyring = field(default_factory=lambda: Keyring({}, {}))
    cassettes: Mapping[str, Cassette] = field(default_factory=dict)
    recorder: Recorder | None = None
    redactor: Redactor = NONE

    def model(self, planned: PlannedModel | None) -> Model:
        """A model for one route; without one every request is refused."""
        if planned is None:
            return NoModel()
        if isinstance(planned, Script):
            return ScriptedModel(planned)
        if isinstance(planned, PlannedReplay):
            return ReplayModel(self.cassettes[planned.cassette], planned)
        return UpstreamModel(
            planned, self._key(planned), self.redactor, self.recorder.add if self.recorder else None
        )

    def close(self) -> None:
        """No more is recorded."""
        if self.recorder is not None:
            self.recorder.close()

    def _key(self, planned: PlannedUpstream) -> Secret | None:
        return None if planned.key is None else self.keyring.key_for(planned.key, planned.base_url)


class NoModel:
    """Of a route that is there for other hosts alone."""

    def serve(self, question: Question) -> Answer:  # noqa: ARG002
        """Nothing."""
        raise RequestError(404, "invalid_request_error", "model_not_found", "this trial has no model")

    def count_tokens(self, question: Question) -> int:  # noqa: ARG002
        """Nothing."""
        raise RequestError(404, "invalid_request_error", "model_not_found", "this trial has no model")


def plain_wire(planned: PlannedModel) -> str:
    """The protocol in which a question without tools is put to a model: `chat` if it speaks that, else `messages`."""
    if isinstance(planned, Script):
        return "chat"
    spoken = planned.wires if isinstance(planned, PlannedReplay) else wires_of(planned.base_url)
    return "chat" if "chat" in spoken else "messages"


def name_of(planned: PlannedModel | None) -> str:
    """What a candidate asks for."""
    if planned is None:
        return ""
    return SCRIPTED if isinstance(planned, Script) else planned.model
