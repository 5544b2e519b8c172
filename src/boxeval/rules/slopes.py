"""How fast what a soak measures grows."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from boxeval.spec.soak import Slope, SoakSample

HOUR_MS = 3_600_000
MEASURED = ("memory_kib", "descriptors", "threads", "disk_kib", "engine_objects")
_Z95 = 1.96


def slopes(samples: Sequence[SoakSample]) -> dict[str, Slope]:
    """One for everything measured; none without samples. The first sample is of a process that is still warming up."""
    if not samples:
        return {}
    steady = samples[1:] or samples
    hours = [sample.at_ms / HOUR_MS for sample in steady]
    return {name: _slope(hours, [getattr(sample, name) for sample in steady]) for name in MEASURED}


def _slope(hours: Sequence[float], values: Sequence[int]) -> Slope:
    first, last = values[0], values[-1]
    if len(values) < 3 or len(set(hours)) < len(hours):
        return Slope(first=first, last=last, per_hour=None, margin=None)
    line = statistics.linear_regression(hours, values)
    middle = statistics.fmean(hours)
    spread = sum((hour - middle) ** 2 for hour in hours)
    left = sum(
        (value - line.intercept - line.slope * hour) ** 2 for hour, value in zip(hours, values, strict=True)
    )
    margin = _Z95 * math.sqrt(left / (len(values) - 2) / spread)
    return Slope(first=first, last=last, per_hour=round(line.slope, 3), margin=round(margin, 3))
