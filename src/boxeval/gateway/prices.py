"""What tokens cost: a table with its date, and exact sums over it."""

from __future__ import annotations

import json
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from boxeval.gateway.interface import Usage
from boxeval.rules.providers import PROVIDERS
from boxeval.spec.models import PlannedUpstream, Pricing, UpstreamModel

TABLE = Path(__file__).with_name("prices.json")
_MILLION = 1_000_000


def priced(place: PlannedUpstream, model: UpstreamModel) -> PlannedUpstream:
    """The place with its price: the suite's own, else the table's for exactly this name, else none."""
    if model.pricing is not None:
        return place.model_copy(update={"pricing": model.pricing})
    table = _table()
    found = table["usdPerMillionTokens"].get(model.upstream, {}).get(model.model)
    if model.upstream not in PROVIDERS or found is None:
        return place
    return place.model_copy(update={"pricing": Pricing.model_validate(found), "prices_of": table["asOf"]})


def cost_usd(pricing: Pricing | None, usage: Usage) -> Decimal | None:
    """Exact cost of an answer in US dollars; None without a price."""
    if pricing is None:
        return None
    fresh = usage.input - usage.cache_read - usage.cache_write
    parts = (
        (fresh, pricing.input),
        (usage.cache_read, pricing.input if pricing.cache_read is None else pricing.cache_read),
        (usage.cache_write, pricing.input if pricing.cache_write is None else pricing.cache_write),
        (usage.output, pricing.output),
    )
    return sum((Decimal(tokens) * Decimal(str(price)) for tokens, price in parts), Decimal(0)) / _MILLION


@cache
def _table() -> Any:
    return json.loads(TABLE.read_bytes())
