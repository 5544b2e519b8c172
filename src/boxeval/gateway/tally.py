"""What one route has served, in numbers. Used under its route's lock."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from boxeval.gateway.interface import Answer, ModelError, RequestError, WireError
from boxeval.spec.trial import ModelTraffic


@dataclass(slots=True)
class Tally:
    """Grows with each answer and each fault."""

    requests: int = 0
    background: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal | None = None
    model_ns: int = 0
    calls: set[str] = field(default_factory=set)
    error: str | None = None
    failed_first: bool = False

    def serve(self, answer: Answer, cost_usd: float | None, took_ns: int) -> None:
        """Count a turn. The cost is in US dollars; None is unknown."""
        self.requests += 1
        self.input_tokens += answer.usage.input
        self.output_tokens += answer.usage.output
        if cost_usd is not None:
            self.cost_usd = (self.cost_usd or Decimal(0)) + Decimal(str(cost_usd))
        self.model_ns += took_ns
        self.calls.update(call.id for call in answer.calls)

    def fail(self, fault: WireError) -> None:
        """Note the first fault of the model's side, and whether it can excuse the candidate."""
        if isinstance(fault, RequestError) or self.error is not None:
            return
        self.error = str(fault)
        self.failed_first = isinstance(fault, ModelError) and self.requests == 0

    def traffic(self) -> ModelTraffic:
        """The numbers for the receipt."""
        return ModelTraffic(
            requests=self.requests,
            background_requests=self.background,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cost_usd=None if self.cost_usd is None else float(self.cost_usd),
            model_ms=self.model_ns // 1_000_000,
            tool_calls=len(self.calls),
            error=self.error,
            failed_before_first_turn=self.failed_first,
        )
