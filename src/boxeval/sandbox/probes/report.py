"""What probes found, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

DETAIL_CHARACTERS = 300


class Verdict(NamedTuple):
    """One check's answer: whether the promise held, and what was seen."""

    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """One check. `box` says where it looked: `agent` and `grader` are boxes, `host` is outside of them."""

    name: str
    box: str
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """Every check of one policy, in the order in which they ran."""

    policy: str
    results: tuple[ProbeResult, ...]

    @property
    def ok(self) -> bool:
        """True if every promise held."""
        return all(result.ok for result in self.results)

    @property
    def red(self) -> tuple[ProbeResult, ...]:
        """The checks that failed."""
        return tuple(result for result in self.results if not result.ok)
