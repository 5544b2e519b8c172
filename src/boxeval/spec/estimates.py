"""Figures over the trials of one task, and their means over tasks."""

from __future__ import annotations

from pydantic import Field

from boxeval.spec.base import Natural, Positive, Record


class Estimates(Record):
    """Of n scored trials of one task with c passes; None where n < k, or n is 0."""

    k: Positive
    trials: Natural = Field(description="n: the scored trials.")
    pass_rate: float | None = Field(None, description="c / n")
    any_of_k: bool | None = Field(None, description="Whether one of the first k trials passed.")
    all_of_k: bool | None = Field(None, description="Whether all of the first k trials passed.")
    pass_at_k: float | None = Field(
        None, description="1 - C(n-c, k) / C(n, k): the unbiased estimate that one of k passes."
    )
    pass_pow_k: float | None = Field(None, description="(c / n) to the power of k")
    pass_pow_k_unbiased: float | None = Field(
        None, description="C(c, k) / C(n, k): the unbiased estimate that all of k pass."
    )


class MeanEstimates(Record):
    """Means over all tasks of a run, each task alike. None if one of them has no such figure."""

    pass_rate: float | None = None
    any_of_k: float | None = None
    all_of_k: float | None = None
    pass_at_k: float | None = None
    pass_pow_k: float | None = None
    pass_pow_k_unbiased: float | None = None
