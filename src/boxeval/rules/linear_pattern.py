"""Patterns of a suite over text of a candidate: RE2, whose time grows with the text and never explodes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any


class PatternError(Exception):
    """A pattern that RE2 does not take, with its reason."""


class LinearPattern:
    """A compiled pattern. `names` are its named groups."""

    def __init__(self, text: str) -> None:
        import re2  # type: ignore[import-untyped]  # has no types; only scripts with `when` need it

        options = re2.Options()
        options.log_errors = False
        try:
            self._compiled: Any = re2.compile(text, options)
        except (re2.error, UnicodeEncodeError) as error:
            told = error.args[0]
            raise PatternError(
                told.decode("utf-8", "replace") if isinstance(told, bytes) else str(error)
            ) from None
        self.names: frozenset[str] = frozenset(self._compiled.groupindex)

    def search(self, text: str) -> dict[str, str] | None:
        """The named groups that took part in the first match, or None if there is none."""
        found = self._compiled.search(text.encode("utf-8", "replace").decode())
        return None if found is None else {k: v for k, v in found.groupdict().items() if v is not None}


@lru_cache(maxsize=256)
def linear_pattern(text: str) -> LinearPattern:
    """Compile a pattern, once. Raises `PatternError`."""
    return LinearPattern(text)
