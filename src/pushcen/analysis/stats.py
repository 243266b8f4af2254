"""Means, confidence intervals and paired differences, of few runs."""

import math
from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from pushcen.analysis.groups import sd


class Interval(NamedTuple):
    """A mean, and how far on either side of it the true one lies with the confidence asked for (None for one value)."""

    mean: float
    half: float | None
    runs: int


def interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Return the mean of a sample and half the width of its confidence interval, by Student's t.

    >>> interval([1.0, 2.0, 3.0])
    Interval(mean=2.0, half=2.484..., runs=3)
    >>> interval([5.0])
    Interval(mean=5.0, half=None, runs=1)
    """
    if len(values) < 2:
        return Interval(fmean(values), None, len(values))
    from scipy.stats import t

    half = float(t.ppf((1 + confidence) / 2, len(values) - 1)) * sd(values) / math.sqrt(len(values))
    return Interval(fmean(values), half, len(values))


def paired(ours: Sequence[float], theirs: Sequence[float], confidence: float = 0.95) -> Interval:
    """Return the mean difference of pairs (same seed, same data, same join times), which is sharper than of means.

    >>> paired([0.71, 0.64, 0.68], [0.70, 0.62, 0.665])
    Interval(mean=0.015..., half=0.012..., runs=3)
    """
    return interval([a - b for a, b in zip(ours, theirs, strict=True)], confidence)
