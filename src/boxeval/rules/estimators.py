"""What k of n trials say, under separate names for separate things (V37). None wherever n < k (H1)."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

from boxeval.spec.estimates import Estimates, MeanEstimates


def estimate(passes: Sequence[bool], k: int) -> Estimates:
    """Of the scored trials of one task in the order of their repeats."""
    n, c = len(passes), sum(passes)
    if not n:
        return Estimates(k=k, trials=0)
    rate = c / n
    if n < k:
        return Estimates(k=k, trials=n, pass_rate=rate)
    return Estimates(
        k=k,
        trials=n,
        pass_rate=rate,
        any_of_k=any(passes[:k]),
        all_of_k=all(passes[:k]),
        pass_at_k=1.0 - comb(n - c, k) / comb(n, k),
        pass_pow_k=rate**k,
        pass_pow_k_unbiased=comb(c, k) / comb(n, k),
    )


def macro_average(rows: Sequence[Estimates]) -> MeanEstimates:
    """Every task counts alike. A figure that one task lacks has no mean: over the others it would say too much."""
    means: dict[str, float | None] = {}
    for name in MeanEstimates.model_fields:
        values = [getattr(row, name) for row in rows]
        known = [float(value) for value in values if value is not None]
        means[name] = sum(known) / len(known) if known and len(known) == len(values) else None
    return MeanEstimates(**means)
