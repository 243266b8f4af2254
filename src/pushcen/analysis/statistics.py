"""What a few seeds can show: differences of pairs and their intervals, tests by flipping signs, the best of several.

Numbers in, numbers out. A sample is a seed: clients of one run share its data, first weights and messages, so they are
no independent samples, and an interval over them tells nothing of other seeds. docs/statistics.md says more.
"""

import math
import statistics
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple, TypeVar

FEWEST = 6
"""Seeds below which there is no p-value: with five, flips of all signs cannot give less than 2 in 32."""
_COUNTED = 16  # values up to which all 2^n signs are counted; beyond, so many are drawn:
_DRAWN = 99_999
Name = TypeVar("Name", bound=Hashable)


class Interval(NamedTuple):
    """A mean and half the width of its confidence interval (None for a single value, which could be anything)."""

    mean: float
    half: float | None
    runs: int

    @property
    def low(self) -> float | None:
        """The lower end."""
        return None if self.half is None else self.mean - self.half

    @property
    def high(self) -> float | None:
        """The upper end."""
        return None if self.half is None else self.mean + self.half

    def contains(self, value: float) -> bool:
        """Return whether the mean may be `value`; that of a single run may be anything."""
        return self.half is None or abs(self.mean - value) <= self.half


def sd(values: Sequence[float]) -> float:
    """Return the standard deviation of a sample; that of a single value is 0.

    >>> sd([1.0, 3.0]), sd([5.0])
    (1.4142135623730951, 0.0)
    """
    return statistics.stdev(values) if len(values) > 1 else 0.0


def interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Return the mean of a sample and half the width of its confidence interval, by Student's t.

    >>> interval([1.0, 2.0, 3.0])
    Interval(mean=2.0, half=2.484..., runs=3)
    >>> interval([5.0])
    Interval(mean=5.0, half=None, runs=1)
    """
    count = len(values)
    return Interval(statistics.fmean(values), needed(count, confidence) * sd(values) if count > 1 else None, count)


def needed(seeds: int, confidence: float = 0.95) -> float:
    """Return how many of its standard deviations over seeds a difference must have for its interval to leave out 0.

    >>> [round(needed(seeds), 2) for seeds in (2, 3, 5, 10)]
    [8.98, 2.48, 1.24, 0.72]
    """
    from scipy.stats import t

    return float(t.ppf((1 + confidence) / 2, seeds - 1)) / math.sqrt(seeds)


def paired(ours: Sequence[float], theirs: Sequence[float], confidence: float = 0.95) -> Interval:
    """Return the mean difference of pairs (same seed, data and join times), sharper than a difference of means.

    >>> paired([0.71, 0.64, 0.68], [0.70, 0.62, 0.665])
    Interval(mean=0.015..., half=0.012..., runs=3)
    """
    return interval([a - b for a, b in zip(ours, theirs, strict=True)], confidence)


def paired_by(ours: Mapping[Name, float], theirs: Mapping[Name, float]) -> Interval | None:
    """Return the mean difference of what both have by the same name, a seed; None if there is no pair.

    >>> paired_by({0: 3.0, 1: 5.0, 2: 9.0}, {1: 4.0, 0: 1.0})
    Interval(mean=1.5, half=6.353..., runs=2)
    """
    both = [name for name in ours if name in theirs]
    return paired([ours[name] for name in both], [theirs[name] for name in both]) if both else None


def flip_test(differences: Sequence[float]) -> float | None:
    """Return how likely so large a mean difference is, either way, if each might as well have the other sign.

    A difference for each seed; None below six. All signs are counted up to 16 of them; beyond, some are drawn, always
    the same.

    >>> flip_test([0.3, 0.1, 0.4, 0.2, 0.5, 0.1])      # all of one sign: 2 of 64
    0.03125
    """
    import numpy as np

    count = len(differences)
    if count < FEWEST:
        return None
    sizes = np.sort(np.abs(np.asarray(differences, dtype=np.float64)))  # the order and the signs do not matter
    least = abs(math.fsum(differences)) - 1e-9 * sizes.sum()  # sums that differ by rounding alone are equal
    if count <= _COUNTED:
        signs = 1 - 2 * (np.arange(2**count)[:, None] >> np.arange(count) & 1)
        return float(np.mean(np.abs(signs @ sizes) >= least))
    rng = np.random.default_rng(0)
    as_large = sum(int(np.sum(abs(rng.choice((-1.0, 1.0), (_DRAWN // 9, count)) @ sizes) >= least)) for _ in range(9))
    return (1 + as_large) / (1 + _DRAWN)


def holm(p_values: Mapping[Name, float]) -> dict[Name, float]:
    """Return p-values corrected for there being several of them, by Holm's method.

    >>> holm({"swift": 0.25, "divshare": 0.03125})
    {'swift': 0.25, 'divshare': 0.0625}
    """
    found, largest = dict(p_values), 0.0
    for at, name in enumerate(sorted(p_values, key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - at) * p_values[name]))
        found[name] = largest
    return found


def best_set(scores: Mapping[Name, Mapping[int, float]], *, higher: bool) -> set[Name]:
    """Return all that may be the best: whose difference to the best mean, seed by seed, has an interval with 0 in it.

    The best mean is that of the best among those with the most seeds. What has but one seed in common with it has no
    interval, and is not among them; if nothing has two seeds, nothing is the best.

    >>> best_set({"a": {0: 0.9, 1: 0.8}, "b": {0: 0.88, 1: 0.81}, "c": {0: 0.3, 1: 0.2}}, higher=True) == {"a", "b"}
    True
    """
    most = max(map(len, scores.values()), default=0)
    if most < 2:
        return set()
    means = {name: statistics.fmean(own.values()) for name, own in scores.items() if len(own) == most}
    best = (max if higher else min)(means, key=means.__getitem__)
    differences = {name: paired_by(own, scores[best]) for name, own in scores.items()}
    return {name for name, own in differences.items() if own is not None and own.runs > 1 and own.contains(0)}
