"""`boxeval.regex`, and exact text and patterns as `boxeval.output` and `boxeval.shell` share them."""

from __future__ import annotations

from typing import Any

from boxeval.graders.child.patterns import Patterns
from boxeval.graders.child.verdicts import PASSED, Verdict, failed


def grade_regex(configuration: dict[str, Any], text: str, patterns: Patterns) -> Verdict:
    """A pattern that matches, or with `negate` does not."""
    pattern, flags = configuration["pattern"], configuration.get("flags", "")
    if configuration.get("negate", False):
        return _unmatched(pattern, flags, text, patterns) or PASSED
    return _matched(pattern, flags, text, patterns) or PASSED


def grade_text(configuration: dict[str, Any], text: str, patterns: Patterns) -> Verdict | None:
    """`expectExact`, `expectRegex`, `notRegex`, in this order: the first that does not hold, or None."""
    exact, flags = configuration.get("expectExact"), configuration.get("flags", "")
    if exact is not None and text != exact:
        return failed("the text is another", f"exactly {exact!r}", repr(text[:200]))
    wanted, unwanted = configuration.get("expectRegex"), configuration.get("notRegex")
    if wanted is not None and (verdict := _matched(wanted, flags, text, patterns)):
        return verdict
    return _unmatched(unwanted, flags, text, patterns) if unwanted is not None else None


def _matched(pattern: str, flags: str, text: str, patterns: Patterns) -> Verdict | None:
    if patterns.matches(pattern, flags, text):
        return None
    return failed("the pattern does not match", f"a match of /{pattern}/m{flags}", repr(text[:200]))


def _unmatched(pattern: str, flags: str, text: str, patterns: Patterns) -> Verdict | None:
    if not patterns.matches(pattern, flags, text):
        return None
    return failed("the pattern matches", f"no match of /{pattern}/m{flags}", repr(text[:200]))
