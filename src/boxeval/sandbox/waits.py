"""How long boxeval waits for an engine. Every wait has a bound, and one setting scales them all.

A wait that ends without an answer is the engine's fault: it makes a trial void, never failed.
"""

from __future__ import annotations

from dataclasses import dataclass

from boxeval.settings import ENGINE_TIMEOUT_S


@dataclass(frozen=True, slots=True)
class Waits:
    """Seconds, in proportion to `request_s`: the longest silence in the answer to one request."""

    request_s: int = ENGINE_TIMEOUT_S

    @property
    def start_s(self) -> float:
        """From the start of a box to the first word of its shim or keeper."""
        return self.request_s

    @property
    def input_s(self) -> float:
        """For a box to take what was sent at once."""
        return self.request_s / 2

    @property
    def grace_s(self) -> float:
        """The shim keeps a deadline itself; this much later its box is killed from outside."""
        return self.request_s / 8

    @property
    def stall_ms(self) -> float:
        """For the engine to take what a command prints; longer, and a missed deadline is not the command's fault."""
        return self.request_s * 1000 / 24

    @property
    def settle_s(self) -> int:
        """For a box to end after it was told to."""
        return max(self.request_s // 6, 1)

    @property
    def remove_s(self) -> float:
        """For what still holds an object to let go of it."""
        return self.request_s / 6

    @property
    def answer_s(self) -> float:
        """For the keeper to do work on a tree."""
        return self.request_s * 2.5

    @property
    def collect_s(self) -> float:
        """For the keeper to tell of its own deadline."""
        return self.request_s / 4

    @property
    def drain_s(self) -> float:
        """For the removals that are left when a run ends."""
        return self.request_s
