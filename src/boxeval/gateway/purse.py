"""What may be spent, and what has been: one purse for each trial, and one for the run."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from decimal import Decimal

from boxeval.gateway.interface import LimitError, Usage
from boxeval.spec.models import Budget
from boxeval.spec.trial import ModelTraffic


@dataclass(frozen=True, slots=True)
class Spent:
    """What one answer cost. `bytes` are those of both bodies, `took_ns` is the time in which it was made."""

    usage: Usage
    cost_usd: Decimal | None
    bytes: int
    took_ns: int


class Purse:
    """Shared by the threads of a gateway. A request is paid for before it is served, the rest after."""

    def __init__(self, budget: Budget, cost_usd: float | None = None, of_run: bool = False) -> None:
        self._limits = {
            "requests": budget.requests,
            "tokens": budget.tokens,
            "bytes": budget.bytes,
            "seconds": budget.seconds,
            "cost": cost_usd,
        }
        self._of_run = of_run
        self._lock = threading.Lock()
        self._spent = dict.fromkeys(self._limits, Decimal(0))

    def used_up(self) -> LimitError | None:
        """The first limit that is reached."""
        for name, limit in self._limits.items():
            if limit is not None and self._spent[name] >= limit:
                whose = "run" if self._of_run else "trial"
                message = f"this {whose} may use {limit} {'USD' if name == 'cost' else name} of its model"
                return LimitError(f"{whose}_budget_{name}", message, self._of_run)
        return None

    def open(self) -> None:
        """Pay for one request. Raises `LimitError` if anything is used up."""
        with self._lock:
            if fault := self.used_up():
                raise fault
            self._spent["requests"] += 1

    def give_back(self) -> None:
        """The request was not answered."""
        with self._lock:
            self._spent["requests"] -= 1

    def take(self, traffic: ModelTraffic) -> None:
        """Pay for what a trial of an earlier session has used; its bytes are not known any more."""
        usage, cost = Usage(traffic.input_tokens, traffic.output_tokens), Decimal(str(traffic.cost_usd or 0))
        with self._lock:
            self._spent["requests"] += traffic.requests + traffic.background_requests
        self.pay(Spent(usage, cost, 0, traffic.model_ms * 1_000_000))

    def pay(self, spent: Spent) -> None:
        """Pay for what an answer has come to."""
        with self._lock:
            self._spent["tokens"] += spent.usage.input + spent.usage.output
            self._spent["bytes"] += spent.bytes
            self._spent["seconds"] += Decimal(spent.took_ns) / 1_000_000_000
            self._spent["cost"] += spent.cost_usd or Decimal(0)
