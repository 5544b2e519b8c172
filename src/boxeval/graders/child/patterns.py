"""ECMAScript patterns, run by V8."""

from __future__ import annotations

import json

from py_mini_racer import MiniRacer

_SOURCE = """
let text = "";
const known = new Map();
function compiled(pattern, flags) {
  const key = flags + "/" + pattern;
  if (!known.has(key)) known.set(key, new RegExp(pattern, flags));
  return known.get(key);
}
function fault(pattern, flags) {
  try { compiled(pattern, flags); return ""; } catch (error) { return String(error.message); }
}
function matches(pattern, flags, subject) {
  return compiled(pattern, flags).test(subject === null ? text : subject);
}
"""

FORGET_EVERY = 500


class Patterns:
    """One engine. No limit of time is kept here: whoever started the process ends it."""

    def __init__(self) -> None:
        self._engine = MiniRacer()
        self._engine.eval(_SOURCE)
        self._text = ""
        self._unicode: dict[str, str] = {}
        self._calls = 0

    def _call(self, name: str, *arguments: str | None) -> object:
        """Each call is a script of its own to V8, which keeps it until it is told that memory is short."""
        self._calls += 1
        if self._calls % FORGET_EVERY == 0:
            self._engine.low_memory_notification()
        return self._engine.call(name, *arguments)

    def fault(self, pattern: str, flags: str = "") -> str | None:
        """Why a pattern is none, in the engine's words; None if it is one. Multiline is always on."""
        said = self._call("fault", pattern, f"m{flags}")
        return str(said) or None

    def matches(self, pattern: str, flags: str, text: str) -> bool:
        """Whether a pattern matches anywhere in a text, multiline."""
        if len(text) > 4096:
            # A long text is asked of many patterns in a row.
            if text is not self._text:
                self._engine.eval(f"text = {json.dumps(text)}; 0")
                self._text = text
            return self._call("matches", pattern, f"m{flags}", None) is True
        return self._call("matches", pattern, f"m{flags}", text) is True

    def matches_unanchored(self, pattern: str, text: str) -> bool:
        """As JSON Schema has it: not multiline, with Unicode where the pattern allows it."""
        flags = self._unicode.get(pattern)
        if flags is None:
            flags = self._unicode[pattern] = "" if self._call("fault", pattern, "u") else "u"
        return self._call("matches", pattern, flags, text) is True

    def schema_fault(self, pattern: str) -> str | None:
        """Why a pattern of a schema is none, with Unicode or without."""
        return str(self._call("fault", pattern, "")) or None
