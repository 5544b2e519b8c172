"""What one route has served, in numbers. Used under its route's lock."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from boxeval.gateway.interface import Heard, LimitError, ModelError, RequestError, Usage, WireError
from boxeval.gateway.purse import Spent
from boxeval.spec.trial import ModelTraffic, StreamFacts

_NOTHING = Usage(0, 0)
NAME_CHARACTERS = 256
RESULTS = 65_536
"""Tool results whose ids are remembered: a candidate can send as many as it likes."""


@dataclass(slots=True)
class Tally:
    """Grows with each answer and each fault."""

    requests: int = 0
    background: int = 0
    unmeasured: int = 0
    usage: Usage = _NOTHING
    cost_usd: Decimal = Decimal(0)
    cost_unknown: bool = False
    model_ns: int = 0
    calls: set[str] = field(default_factory=set)
    results: dict[str, bool | None] = field(default_factory=dict)
    results_cut: bool = False
    snapshots: int = 0
    usage_twice: bool = False
    by_message: dict[str, Usage] = field(default_factory=dict)
    refused: bool = False
    silent_ns: int = 0
    error: str | None = None
    failed_first: bool = False
    limit: LimitError | None = None

    def serve(self, heard: Heard, spent: Spent, is_background: bool) -> None:
        """Count an answer, also one that was cut: without its usage the counts are only what was told so far."""
        self.requests += not is_background
        self.background += is_background
        self.usage = _sum(self.usage, spent.usage)
        self.unmeasured += heard.usage is None or not heard.is_whole
        self.cost_unknown |= spent.cost_usd is None
        self.cost_usd += spent.cost_usd or 0
        self.model_ns += spent.took_ns
        self.calls |= heard.calls
        self.snapshots += heard.snapshots
        self.refused = self.refused if is_background else heard.is_refusal
        self.usage_twice |= heard.usages_told > 1
        self.by_message[heard.message_id or f"#{len(self.by_message)}"] = spent.usage

    def hear_results(self, results: dict[str, bool | None]) -> None:
        """Note which tool calls came back, and whether they failed where the protocol tells."""
        for call, failed in results.items():
            name = call[:NAME_CHARACTERS]
            if name in self.results or len(self.results) < RESULTS:
                self.results[name] = failed
            else:
                self.results_cut = True

    def fail(self, fault: WireError) -> None:
        """Note the first fault of the model's side, whether it can excuse the candidate, and the first limit."""
        if isinstance(fault, LimitError):
            self.limit = self.limit or fault
        if isinstance(fault, RequestError) or self.error is not None:
            return
        # A part of the request may be in it, and what a candidate sends need not be valid Unicode.
        self.error = str(fault).encode("utf-8", "replace").decode()
        self.failed_first = isinstance(fault, ModelError) and self.requests == 0

    def traffic(self) -> ModelTraffic:
        """The numbers for the receipt."""
        known = {call: failed for call, failed in self.results.items() if failed is not None}
        told = len(known) == len(self.results) and not self.results_cut
        return ModelTraffic(
            requests=self.requests,
            background_requests=self.background,
            unmeasured_requests=self.unmeasured,
            input_tokens=self.usage.input,
            output_tokens=self.usage.output,
            cache_read_tokens=self.usage.cache_read,
            cache_write_tokens=self.usage.cache_write,
            cost_usd=None if self.cost_unknown or not self.by_message else float(self.cost_usd),
            model_ms=self.model_ns // 1_000_000,
            tool_calls=len(self.calls),
            failed_tool_calls=sum(known.values()) if told else None,
            stream=self._stream() if self.by_message else None,
            refused=self.refused,
            silent_ms=self.silent_ns // 1_000_000,
            error=self.error,
            failed_before_first_turn=self.failed_first,
            limit=str(self.limit) if self.limit else None,
            run_budget_spent=self.limit is not None and self.limit.of_run,
        )

    def _stream(self) -> StreamFacts:
        messages = _NOTHING
        for usage in self.by_message.values():
            messages = _sum(messages, usage)
        return StreamFacts(
            cumulative_snapshots=self.snapshots,
            usage_double_counted=self.usage_twice,
            segment_usage_matches_messages=messages == self.usage,
        )


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(
        one.input + other.input,
        one.output + other.output,
        one.cache_read + other.cache_read,
        one.cache_write + other.cache_write,
    )
