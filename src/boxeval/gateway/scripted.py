"""A model that reads its answers from a script: request n gets turn n (S47)."""

from __future__ import annotations

import json

from boxeval.gateway.interface import Answer, Call, ModelError
from boxeval.spec.models import Script, Text


class ScriptedModel:
    """Serves a script once. Past its last turn every request fails; it never waits, repeats or invents."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._turns = 0
        self._calls = 0

    def answer(self) -> Answer:
        """The next turn. Call ids are `call_1`, `call_2`, … over the whole route. Raises `ModelError`."""
        turns = self._script.turns
        if self._turns == len(turns):
            plural = "turn is" if len(turns) == 1 else "turns are"
            raise ModelError(
                400,
                "invalid_request_error",
                "script_exhausted",
                f"the script's {len(turns)} {plural} used up",
            )
        turn = turns[self._turns]
        self._turns += 1
        text = turn.text if isinstance(turn, Text) else None
        asked = () if isinstance(turn, Text) else turn.calls
        calls = tuple(
            Call(f"call_{self._calls + n}", call.tool, json.dumps(call.input))
            for n, call in enumerate(asked, start=1)
        )
        self._calls += len(calls)
        usage = self._script.usage
        return Answer(self._turns, text, calls, usage.input, usage.output, usage.cost_usd)
