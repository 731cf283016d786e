# SPDX-License-Identifier: Apache-2.0
"""Percentiles and spread of a few values: one definition for all of tune.

A percentile here is the smallest of the values that at least that share of them does not exceed (nearest
rank; Hyndman and Fan 1996, "Sample Quantiles in Statistical Packages", definition 1). It is a value that
was measured, never one in between; of fewer than 20 values P95 is the largest. statistics.quantiles() has no such
definition: both of its methods interpolate.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence


def percentile(values: Sequence[float], share: float) -> float:
    """The percentile at a share of 1 (0.95: P95). ValueError where there are no values."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    # 0.95 * 20 is 19.000000000000004 in floating point: the rank is 19.
    rank = math.ceil(round(share * len(ordered), 9))
    return ordered[min(max(rank, 1), len(ordered)) - 1]


def variation(values: Sequence[float]) -> float | None:
    """Coefficient of variation: standard deviation of the sample / mean. None: fewer than 2 values, or a mean of 0."""
    if len(values) < 2:
        return None
    mean = statistics.fmean(values)
    return None if mean == 0 else statistics.stdev(values) / abs(mean)
