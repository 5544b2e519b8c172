"""What a session is asked to be, beside its prompt: read once from the environment, never changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class OptionsError(Exception):
    """The environment asks for something that this agent does not have."""


@dataclass(frozen=True)
class LoopOptions:
    """A bounded loop: `verify` is a shell command, run `max_attempts` times at most with a repair between."""

    verify: str
    max_attempts: int = 3


@dataclass(frozen=True)
class Options:
    """See docs/reference-agent.md. `role`, `session` and `parent` are set by an agent that dispatches another."""

    permissions: str = "full"
    surface: str = "main"
    continue_session: bool = False
    context_tokens: int | None = None
    stop_gate: bool = False
    mcp: dict[str, list[str]] = field(default_factory=dict)
    loop: LoopOptions | None = None
    role: str = "main"
    session: str | None = None
    parent: str | None = None

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Options:
        """Raises OptionsError for what is no JSON object or has a key that is unknown."""
        try:
            given: dict[str, Any] = json.loads(environ.get("BOXEVAL_OPTIONS") or "{}")
            loop = given.pop("loop", None)
            return cls(
                permissions=environ.get("BOXEVAL_PERMISSIONS", "full"),
                loop=None if loop is None else LoopOptions(**_snake(loop)),
                role=environ.get("BOXEVAL_ROLE", "main"),
                session=environ.get("BOXEVAL_SESSION"),
                parent=environ.get("BOXEVAL_PARENT"),
                **_snake(given),
            )
        except (ValueError, RecursionError, TypeError, AttributeError) as error:
            raise OptionsError(f"BOXEVAL_OPTIONS: {error}") from None


def _snake(given: dict[str, Any]) -> dict[str, Any]:
    """Names are camelCase outside and snake_case inside."""
    return {
        "".join(f"_{c.lower()}" if c.isupper() else c for c in name): value for name, value in given.items()
    }
