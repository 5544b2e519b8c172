"""What pydantic cannot say about a script: patterns that RE2 takes, and turns that could never be served."""

from __future__ import annotations

from collections.abc import Iterator

from boxeval.formats.faults import Fault
from boxeval.formats.place import show
from boxeval.rules.linear_pattern import PatternError, linear_pattern
from boxeval.spec.models import Script


def script_faults(script: Script) -> Iterator[Fault]:
    """Everything wrong with a script whose parts are well-typed."""
    for index, turn in enumerate(script.turns):
        when = turn.when
        if when is None:
            continue
        if not when.model_fields_set:
            yield ("turns", index, "when"), "says nothing; name what must hold, or leave it out"
        for key, pattern in (("lastMessage", when.last_message), ("toolResult", when.tool_result)):
            if pattern is None:
                continue
            try:
                linear_pattern(pattern)
            except PatternError as error:
                yield ("turns", index, "when", key), f"{show(pattern)} is no pattern of RE2: {error}"
    usage = script.usage
    if usage.cache_read + usage.cache_write > usage.input:
        yield ("usage",), "cacheRead and cacheWrite are parts of input, and together more than it"
