"""The stop gate: a report about changes that nobody has tried is sent back, once."""

from __future__ import annotations

from tools import CHANGERS, VERIFIED, Result

OBJECTION = """\
You have changed files and not run anything since. Check your work with bash before you report, or say why
it cannot be checked."""


class StopGate:
    """Watches the results of tools. It objects once: the model may have a good reason not to check."""

    def __init__(self, is_on: bool) -> None:
        self._may_object = is_on
        self._is_unverified = False

    def saw(self, name: str, result: Result) -> None:
        """Take note of a tool call. A command counts as a check if it ended with exit code 0."""
        if name in CHANGERS and not result.error:
            self._is_unverified = True
        elif name == "bash" and result.text.startswith(VERIFIED):
            self._is_unverified = False

    def objection(self) -> str | None:
        """What to answer to a report, if it may not stand yet."""
        if not (self._may_object and self._is_unverified):
            return None
        self._may_object = False
        return OBJECTION
