"""A model that reads its answers from a script: request n gets turn n (S47)."""

from __future__ import annotations

import re
import threading
from decimal import Decimal
from typing import Any

from boxeval.gateway.interface import Answer, Asked, Call, Question, ScriptError, Usage
from boxeval.rules.linear_pattern import linear_pattern
from boxeval.spec.models import Failure, Refusal, Script, Text, ToolCalls, When

_VARIABLE = re.compile(r"\{\{(\w+)\}\}")
_FAILURES = {429: ("rate_limit_error", "rate_limit_exceeded"), 529: ("server_error", "overloaded")}


class ScriptedModel:
    """Serves a script once. Past its last turn every request fails; it never repeats or invents.

    A turn whose `when` does not hold is left out for good. What its patterns name is put into later texts.
    """

    def __init__(self, script: Script) -> None:
        self._script = script
        self._lock = threading.Lock()
        self._next = 0
        self._calls = 0
        self._variables: dict[str, str] = {}
        usage = script.usage
        self._usage = Usage(usage.input, usage.output, usage.cache_read, usage.cache_write)
        self._cost = None if usage.cost_usd is None else Decimal(str(usage.cost_usd))

    def serve(self, question: Question) -> Answer:
        """The next turn. Call ids are `call_1`, `call_2`, … over the whole route. Raises `ScriptError`."""
        if question.is_background:
            return Answer(0, self._script.background, (), Usage(0, 0))
        with self._lock:
            turn = self._turn(question.asked)
            if isinstance(turn, Failure):
                kind, code = _FAILURES.get(turn.error, ("server_error", "scripted_error"))
                raise ScriptError(turn.error, kind, code, f"turn {self._next} of the script", is_final=False)
            return self._answer(turn)

    def count_tokens(self, question: Question) -> int:  # noqa: ARG002 - a script says the same whatever is asked
        """Of any request: what every turn reports."""
        return self._script.usage.input

    def _turn(self, asked: Asked) -> Text | ToolCalls | Refusal | Failure:
        while self._next < len(self._script.turns):
            turn = self._script.turns[self._next]
            self._next += 1
            if turn.when is None or self._holds(turn.when, asked):
                return turn
        count = len(self._script.turns)
        plural = "turn is" if count == 1 else "turns are"
        message = f"the script's {count} {plural} used up"
        raise ScriptError(400, "invalid_request_error", "script_exhausted", message)

    def _holds(self, when: When, asked: Asked) -> bool:
        words = [said.text for said in asked.said if said.call_id is None]
        results = [said for said in asked.said if said.call_id is not None]
        if when.tool_failed is not None and when.tool_failed is not any(said.failed for said in results):
            return False
        found: dict[str, str] = {}
        for pattern, texts in (
            (when.last_message, words[-1:]),
            (when.tool_result, [said.text for said in results]),
        ):
            if pattern is None:
                continue
            matches = (linear_pattern(pattern).search(text) for text in texts)
            match = next((match for match in matches if match is not None), None)
            if match is None:
                return False
            found |= match
        self._variables |= found
        return True

    def _answer(self, turn: Text | ToolCalls | Refusal) -> Answer:
        asked = turn.calls if isinstance(turn, ToolCalls) else ()
        calls = tuple(
            Call(f"call_{self._calls + n}", call.tool, {k: self._filled(v) for k, v in call.input.items()})
            for n, call in enumerate(asked, start=1)
        )
        self._calls += len(calls)
        return Answer(
            number=self._next,
            text=self._filled(turn.refusal if isinstance(turn, Refusal) else turn.text),
            calls=calls,
            usage=self._usage,
            cost_usd=self._cost,
            is_refusal=isinstance(turn, Refusal),
            delay_ms=turn.delay_ms,
            cut_after=turn.cut_after,
            garble_after=turn.garble_after,
        )

    def _filled(self, value: Any) -> Any:
        """A value with the variables that are known in their places; what is not known stays as it is.

        In one pass: what a variable holds is the candidate's, and names no variable itself.
        """
        if isinstance(value, list):
            return [self._filled(item) for item in value]
        if not isinstance(value, str):
            return value
        return _VARIABLE.sub(lambda found: self._variables.get(found[1], found[0]), value)
