"""A model that reads its answers from a script: request n gets turn n (S47)."""

from __future__ import annotations

import threading

from boxeval.gateway.interface import Answer, Asked, Call, ScriptError, Usage
from boxeval.spec.models import Script, Text

BACKGROUND = "OK"
"""What a background request gets."""


class ScriptedModel:
    """Serves a script once. Past its last turn every request fails; it never waits, repeats or invents."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._lock = threading.Lock()
        self._turns = 0
        self._calls = 0

    def answer(self, asked: Asked) -> Answer:  # noqa: ARG002 - a script says the same whatever is asked
        """The next turn. Call ids are `call_1`, `call_2`, … over the whole route. Raises `ScriptError`."""
        with self._lock:
            return self._next()

    def background(self) -> Answer:
        """A fixed text that costs no turn and no tokens."""
        return Answer(0, BACKGROUND, (), Usage(0, 0))

    @property
    def cost_usd(self) -> float | None:
        """Of each turn."""
        return self._script.usage.cost_usd

    def count_tokens(self) -> int:
        """Of any request: what every turn reports."""
        return self._script.usage.input

    def _next(self) -> Answer:
        turns = self._script.turns
        if self._turns == len(turns):
            plural = "turn is" if len(turns) == 1 else "turns are"
            raise ScriptError(
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
            Call(f"call_{self._calls + n}", call.tool, call.input) for n, call in enumerate(asked, start=1)
        )
        self._calls += len(calls)
        usage = self._script.usage
        return Answer(self._turns, text, calls, Usage(usage.input, usage.output))
