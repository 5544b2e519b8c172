"""Which model names a route answers to, and which requests are not part of the candidate's own conversation."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from boxeval.gateway.interface import Asked, RequestError


@dataclass(frozen=True, slots=True)
class Names:
    """`main` is what the candidate is told to ask for.

    Some agents ask for more than their conversation: a title, a topic, a quota. Such a *background* request must not
    use up a turn of a script. It is one that asks for a name like one of `background` (as file names are matched),
    or, with `tools_only`, one that offers no tools; an agent's module says what is true of its agent.
    """

    main: str
    background: tuple[str, ...] = ()
    tools_only: bool = False

    def is_background(self, asked: Asked) -> bool:
        """Raises `RequestError` for a name that is not served."""
        if asked.model == self.main:
            return self.tools_only and not asked.tools
        if any(fnmatchcase(asked.model, pattern) for pattern in self.background):
            return True
        raise RequestError(
            404, "invalid_request_error", "model_not_found", f"model: this route serves {self.main!r} only"
        )
