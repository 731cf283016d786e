# SPDX-License-Identifier: Apache-2.0
"""Tests by ranks and permutations for the few values that runs give: no assumption of a distribution.

They are here and not from a library because they are short, and the one that has them (SciPy) would be 140 MB
more in every installation; its results are what the tests compare with. P-values are two-sided and exact where
the permutations can be counted; beyond that by the normal approximation with corrections for ties and continuity.

Sources: Mann and Whitney 1947; Mann 1945 and Kendall 1975 (trend); Theil 1950 and Sen 1968 (slope); Hawkins
and Deng 2010, "A Nonparametric Change-Point Control Chart" (largest standardised Mann-Whitney statistic over
all splits); Fisher 1935 (sign changes of pairs); Cliff 1993 (delta); Spearman 1904; Benjamini and Hochberg 1995
(many tests at once).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
import statistics
from collections import Counter
from collections.abc import Sequence

SIGNIFICANT = 0.05
"""A p-value below it is reported as a difference."""

LEAST_EFFECT = 0.10
"""A smaller part of the median is reported as no difference: nodes of one type differ by some per cent"""

_EXACT_ARRANGEMENTS = 20_000
_PERMUTATIONS = 4_999
_NEAR = 1e-9


def is_little(ratio: float) -> bool:
    """Is one median so many times the other too little, by LEAST_EFFECT, to be called a difference?"""
    return 1 / (1 + LEAST_EFFECT) < ratio < 1 + LEAST_EFFECT


def ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share the mean of theirs."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    found = [0.0] * len(values)
    at = 0
    while at < len(order):
        end = at
        while end + 1 < len(order) and values[order[end + 1]] == values[order[at]]:
            end += 1
        for i in order[at : end + 1]:
            found[i] = (at + end) / 2 + 1
        at = end + 1
    return found


def spearman(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Spearman's rank correlation, -1 to 1; None where one of the two does not vary or there are fewer than 3 pairs."""
    if len(x) < 3 or len(set(x)) < 2 or len(set(y)) < 2:
        return None
    return statistics.correlation(ranks(x), ranks(y))


def adjusted(p_values: Sequence[float]) -> list[float]:
    """Each p-value as it is when so many are looked at: below q, at most the share q of those reported is by chance."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i], reverse=True)
    found = [1.0] * len(p_values)
    least = 1.0
    for rank, i in zip(range(len(order), 0, -1), order, strict=True):
        least = min(least, p_values[i] * len(order) / rank)
        found[i] = least
    return found


def _normal_p(z: float) -> float:
    return min(1.0, math.erfc(abs(z) / math.sqrt(2)))


def _tie_sizes(values: Sequence[float]) -> list[int]:
    return [n for n in Counter(values).values() if n > 1]


def mann_whitney(a: Sequence[float], b: Sequence[float]) -> float:
    """The p-value of: b is as likely above a as below. Exact up to 20,000 arrangements; ValueError: one is empty."""
    if not a or not b:
        raise ValueError("no values")
    pooled = ranks([*a, *b])
    n, m = len(a), len(b)
    expected = n * (n + m + 1) / 2
    distance = abs(sum(pooled[:n]) - expected)
    if math.comb(n + m, n) <= _EXACT_ARRANGEMENTS:
        sums = [sum(chosen) for chosen in itertools.combinations(pooled, n)]
        return sum(abs(s - expected) >= distance - _NEAR for s in sums) / len(sums)
    total = n + m
    ties = sum(t**3 - t for t in _tie_sizes([*a, *b]))
    variance = n * m / 12 * (total + 1 - ties / (total * (total - 1)))
    return 1.0 if variance <= 0 else _normal_p(max(0.0, distance - 0.5) / math.sqrt(variance))


def cliffs_delta(a: Sequence[float], b: Sequence[float]) -> float:
    """Share of pairs in which b is above a, less the share in which it is below: -1 to 1."""
    above = sum((y > x) - (y < x) for x in a for y in b)
    return above / (len(a) * len(b))


def paired(differences: Sequence[float]) -> float:
    """P-value of: differences of pairs are as likely above 0 as below. Exact up to 14 pairs, else by fixed draws."""
    sizes = [abs(d) for d in differences if d != 0]
    if not sizes:
        return 1.0
    distance = abs(sum(d for d in differences))
    if len(sizes) <= 14:
        sums = [abs(sum(s * v for s, v in zip(signs, sizes, strict=True)))
                for signs in itertools.product((1, -1), repeat=len(sizes))]  # fmt: skip
        return sum(s >= distance - _NEAR * distance for s in sums) / len(sums)
    draw = random.Random(0)
    hits = sum(
        abs(sum(v if draw.random() < 0.5 else -v for v in sizes)) >= distance - _NEAR * distance
        for _ in range(_PERMUTATIONS)
    )
    return (hits + 1) / (_PERMUTATIONS + 1)


def theil_sen(values: Sequence[float]) -> float:
    """Slope: the median of the slopes of all pairs of values, a step apart each. ValueError below 2 values."""
    slopes = [(values[j] - values[i]) / (j - i) for i, j in itertools.combinations(range(len(values)), 2)]
    if not slopes:
        raise ValueError("no values")
    return statistics.median(slopes)


def kendall_s(values: Sequence[float]) -> int:
    """Pairs in which the later value is larger, less those in which it is smaller."""
    return sum((b > a) - (b < a) for a, b in itertools.combinations(values, 2))


def mann_kendall(values: Sequence[float]) -> float:
    """The p-value of: values neither rise nor fall. Exact without ties up to 50 values and with ties up to 7."""
    n = len(values)
    s = kendall_s(values)
    ties = _tie_sizes(values)
    if not ties and n <= 50:
        return _kendall_exact(n, s)
    if n <= 7:
        found = [abs(kendall_s(p)) for p in itertools.permutations(values)]
        return sum(f >= abs(s) for f in found) / len(found)
    variance = (n * (n - 1) * (2 * n + 5) - sum(t * (t - 1) * (2 * t + 5) for t in ties)) / 18
    return 1.0 if variance <= 0 else _normal_p(max(0, abs(s) - 1) / math.sqrt(variance))


def _kendall_exact(n: int, s: int) -> float:
    """How many of the n! orders have so many inversions, built up value by value."""
    counts = [1]
    for size in range(2, n + 1):
        counts = [
            sum(counts[k] for k in range(max(0, inversions - size + 1), min(inversions, len(counts) - 1) + 1))
            for inversions in range(len(counts) + size - 1)
        ]
    pairs = n * (n - 1) // 2
    return sum(c for inversions, c in enumerate(counts) if abs(pairs - 2 * inversions) >= abs(s)) / math.factorial(n)


@dataclasses.dataclass(frozen=True)
class Change:
    """Values from index `at` on differ from those before: p counts that `at` was looked for."""

    at: int
    p: float


CHANGE_SEGMENT = 3
"""Values on either side of a change, at least: one odd run is no change."""


def change_point(values: Sequence[float]) -> Change | None:
    """The split at which the sides differ most, by the standardised Mann-Whitney statistic. None: fewer than 6 values.

    p is the share of orders of the values whose own best split is as good: all orders up to 7 values, else
    4,999 fixed draws and the order that was found.
    """
    n = len(values)
    if n < 2 * CHANGE_SEGMENT:
        return None
    own = ranks(values)
    best, at = _best_split(own)
    if n <= 7:
        found = [_best_split(p)[0] for p in itertools.permutations(own)]
        return Change(at, sum(f >= best - _NEAR for f in found) / len(found))
    draw = random.Random(0)
    shuffled = list(own)
    hits = 0
    for _ in range(_PERMUTATIONS):
        draw.shuffle(shuffled)
        hits += _best_split(shuffled)[0] >= best - _NEAR
    return Change(at, (hits + 1) / (_PERMUTATIONS + 1))


def _best_split(own: Sequence[float]) -> tuple[float, int]:
    n = len(own)
    total = 0.0
    best, at = -1.0, CHANGE_SEGMENT
    for t in range(1, n - CHANGE_SEGMENT + 1):
        total += own[t - 1]
        if t >= CHANGE_SEGMENT:
            z = abs(total - t * (n + 1) / 2) / math.sqrt(t * (n - t))
            if z > best + _NEAR:
                best, at = z, t
    return best, at
