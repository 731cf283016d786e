# SPDX-License-Identifier: Apache-2.0
"""Judges samples by a budget: `met`, `missed` or `undecided`; and by another arm: `less`, `more` or `undecided`.

A budget is `met` where the whole interval of the median lies within it, `missed` where all of it lies outside.
The interval is a bootstrap's: the rounds are drawn again, with replacement, and the middle 95 % of the medians
are kept. A ratio is of one round, arm ÷ none, so that a slowdown of both does not change it.
"""
import collections
import random
import statistics

ROUNDS_MIN = 5      # fewer do not show their spread
DRAWS = 2000
MET, MISSED, UNDECIDED = "met", "missed", "undecided"
LESS, MORE = "less", "more"

Verdict = collections.namedtuple("Verdict", "word why")


def interval(values):
    """Returns (low, high), the 95 % interval of the median; deterministic for the same values."""
    values = list(values)
    draw = random.Random(len(values))
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(DRAWS))
    return medians[int(DRAWS * 0.025)], medians[int(DRAWS * 0.975) - 1]


def judge(values, budget, at_least=False, null=None):
    """
    Returns a Verdict. at_least: the budget is a floor, not a ceiling. null: the same ratio of an arm that does
    nothing; where its interval is wider than the budget's margin over 1, the values only measure the machine.
    """
    values = list(values)
    if len(values) < ROUNDS_MIN:
        return Verdict(UNDECIDED, f"{len(values)} of {ROUNDS_MIN} rounds")
    low, high = interval(values)
    within, outside = (low >= budget, high < budget) if at_least else (high <= budget, low > budget)
    if outside:
        middle = statistics.median(values)
        by = abs(middle - budget)
        return Verdict(MISSED, f"by {by:.3g}" + (f" ({100 * by / budget:.0f} %)" if budget else ""))
    if not within:
        return Verdict(UNDECIDED, "the budget lies within the interval")
    if null is not None:
        null_low, null_high = interval(null)
        if null_high - null_low > abs(budget - 1):
            return Verdict(UNDECIDED, f"nothing at all reads {null_low:.3f} to {null_high:.3f}")
    return Verdict(MET, "")


def judge_none(counts):
    """Judges a budget of 0: any other count misses it, even in a single round."""
    counts = list(counts)
    if any(counts):
        return Verdict(MISSED, f"by {max(counts):g}")
    return Verdict(MET, "") if len(counts) >= ROUNDS_MIN else Verdict(UNDECIDED, f"{len(counts)} of {ROUNDS_MIN} rounds")


def compare(values, null):
    """
    Returns a Verdict on the ratios of one arm ÷ another: LESS or MORE, where the whole interval is below or above 1
    and that of null, the same ratio of two arms that are equal.
    """
    values = list(values)
    if len(values) < ROUNDS_MIN:
        return Verdict(UNDECIDED, f"{len(values)} of {ROUNDS_MIN} rounds")
    low, high = interval(values)
    null_low, null_high = interval(null)
    if high < min(1, null_low):
        return Verdict(LESS, "")
    if low > max(1, null_high):
        return Verdict(MORE, "")
    if low <= 1 <= high:
        return Verdict(UNDECIDED, "1 lies within the interval")
    return Verdict(UNDECIDED, f"two equal arms read {null_low:.3f} to {null_high:.3f}")
