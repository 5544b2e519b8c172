"""What a text grader answers: the fields of `boxeval.spec.graded.CheckVerdict` as JSON."""

from __future__ import annotations

from typing import Any

EXCERPT = 200

Verdict = dict[str, Any]
PASSED: Verdict = {"status": "passed"}


def failed(reason: str, expected: str | None = None, received: str | None = None) -> Verdict:
    """An assertion that does not hold."""
    return {
        "status": "failed",
        "reason": short(reason),
        "expected": short(expected),
        "received": short(received),
    }


def error(reason: str, limit: str | None = None) -> Verdict:
    """The grader could not do its work."""
    return {"status": "error", "reason": short(reason), "limit": limit}


def short(text: str | None) -> str | None:
    """At most 200 characters, without halves of surrogate pairs."""
    if text is None:
        return None
    cut = text if len(text) <= EXCERPT else text[: EXCERPT - 1] + "…"
    return cut.encode("utf-8", "replace").decode()
