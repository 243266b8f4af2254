"""Which levels to send, for so many bits in all: thresholds that minimise squared error plus lambda times entropy.

One lambda for all blocks is the best way to divide the bits among them. Thresholds lie between the bins of a histogram
of magnitudes (64 bins for each power of two), so that whatever is counted there is exact, and finding lambda takes no
further look at the weights.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pushcen.codec.bins import LIMIT
from pushcen.codec.entropy import LEVELS, coded_bits
from pushcen.codec.jit import kernel

FINE = 17
"""Bits of a float32 that a bin does not tell apart: it tells the exponent and six bits of the mantissa."""
BINS = 16 * 64
"""Sixteen powers of two below the largest magnitude; what is smaller is in the first bin."""
MOST = LEVELS // 2
"""Levels above zero, at most."""
_GAIN = 4.0  # by which values grow at most: where few numbers are sent, more would be noise

Levels = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Histogram:
    """How many values of a block are in each bin of magnitudes, and what they add up to, each as its bin's middle."""

    base: int
    """The number of the first bin: the bits of a float32 without its sign, shifted by `FINE`."""
    counts: NDArray[np.int64]
    """How many values are below each bin: a row for all, and a row for the negative ones."""
    sums: NDArray[np.float64]
    """The sum of the magnitudes below each bin."""
    energy: float
    """The sum of all squares."""

    @classmethod
    def of(cls, rows: "list[NDArray[np.float32]]", largest: float) -> "Histogram":
        """Return the histogram of a block, whose largest magnitude is given."""
        top = int(np.float32(largest).view(np.int32)) >> FINE
        base = max(0, top - BINS + 1)
        found = np.zeros((4, 2 * BINS), np.int64)
        for row in rows:
            _count(row.view(np.int32), base, found)
        signed = found.sum(axis=0).reshape(2, BINS)
        middles = (((base + np.arange(BINS, dtype=np.int32)) << FINE) + (1 << FINE >> 1)).astype(np.int32)
        counts = np.pad([signed.sum(axis=0), signed[1]], ((0, 0), (1, 0))).cumsum(axis=1)
        each = middles.view(np.float32).astype(np.float64)
        sums = np.pad(signed.sum(axis=0) * each, (1, 0)).cumsum()
        return cls(base, counts, sums, float((signed.sum(axis=0) * each**2).sum()))

    def edge(self, bin: int) -> float:
        """Return the least magnitude in a bin."""
        return float(np.int32((self.base + bin) << FINE).view(np.float32))


@dataclass(frozen=True, eq=False)
class Choice:
    """The levels of a block: where each begins, and what stands for it."""

    begins: NDArray[np.int64]
    """The first bin of each level above zero."""
    values: NDArray[np.float32]
    """The mean magnitude of each level above zero, in ascending order."""
    counts: NDArray[np.int64]
    """How many values have each level, from the most negative to the largest."""

    @property
    def bits(self) -> float:
        """About how many bits the coded levels take, without the states at their end."""
        return coded_bits(self.counts) if self.values.size else 0.0

    def unbiased(self, energy: float) -> "Choice":
        """Return these levels with larger values, so that they have no bias towards zero.

        `energy` is that of all they stand for. The means of levels have less, and their error takes that off it; with
        values that are larger by the same factor the error has nothing to do with what they stand for.

        >>> draw = np.random.default_rng(1).normal(size=1000).astype(np.float32)
        >>> histogram = Histogram.of([draw], float(np.abs(draw).max()))
        >>> choice = choose(histogram, price=0.3)
        >>> choice.values.round(1), choice.unbiased(histogram.energy).values.round(1)
        (array([1.5, 3.4], dtype=float32), array([2. , 4.5], dtype=float32))
        """
        above = self.values.size
        if not above:
            return self
        both = self.counts[above + 1 :] + self.counts[:above][::-1]
        gain = energy / float((both * self.values.astype(np.float64) ** 2).sum())
        gain = max(1.0, min(gain, _GAIN, LIMIT / float(self.values[-1])))
        return replace(self, values=(self.values * gain).astype(np.float32))

    def lookup(self) -> Levels:
        """Return the level of each bin: 0, or which one above zero."""
        return np.searchsorted(self.begins, np.arange(BINS), side="right").astype(np.uint8)


def choose(histogram: Histogram, price: float) -> Choice:
    """Return levels that minimise squared error plus `price` times bits, as well as a few iterations find them."""
    begins, values = _levels(histogram.counts[0], histogram.sums, histogram.base, price)
    cuts = np.append(begins, BINS)
    upper, negative = (np.diff(row[cuts]) for row in histogram.counts)
    zeros = histogram.counts[0, cuts[0]]
    return Choice(begins, values.astype(np.float32), np.concatenate([negative[::-1], [zeros], upper - negative]))


def within(histograms: list[Histogram], budget: float, overhead: float) -> list[Choice]:
    """Return the finest levels of all blocks that fit into `budget` bits: coded, and `overhead` for each level."""
    high = max((histogram.edge(BINS - 1) for histogram in histograms), default=0.0) ** 2 or 1.0
    low, choices = high * 2.0**-40, [choose(histogram, 4 * high) for histogram in histograms]
    high *= 4
    for _ in range(24):
        price = math.sqrt(low * high)
        found = [choose(histogram, price) for histogram in histograms]
        if sum(choice.bits + overhead * choice.counts.size for choice in found) <= budget:
            high, choices = price, found
        else:
            low = price
    return choices


@kernel
def assign(bits: NDArray[np.int32], base: int, lookup: NDArray[np.uint8], zero: int, levels: NDArray[np.uint8]) -> None:
    """Write the level of each value into `levels`; `zero` is the one that stands for zero."""
    for i in range(bits.size):
        above = lookup[max(int(bits[i] & 0x7FFFFFFF) >> FINE, base) - base]
        levels[i] = zero - above if bits[i] < 0 else zero + above


@kernel
def _count(bits: NDArray[np.int32], base: int, counts: NDArray[np.int64]) -> None:
    """Count values by bin, in four rows in turn, so that equal values in a row need not wait for each other."""
    for i in range(bits.size):
        bin = max(int(bits[i] & 0x7FFFFFFF) >> FINE, base) - base
        counts[i & 3, bin + BINS * (bits[i] < 0)] += 1


@kernel
def _levels(counts: NDArray[np.int64], sums: NDArray[np.float64], base: int, price: float
            ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:  # fmt: skip
    """Return where each level begins and its mean, by turns: means, their bits, where the next is worth its price."""
    step = math.sqrt(price / 0.1155)  # 2 ln 2 / 12: at many bits the best levels are evenly apart, by this
    count, last = MOST, counts.size - 1
    begins, values, cost = np.empty(MOST, np.int64), np.zeros(MOST + 1), np.zeros(MOST + 1)
    for level in range(count):
        begins[level] = _bin((level + 0.6) * step, base, last)
    for turn in range(7):
        kept = 0
        for level in range(count):  # drop the empty ones
            end = begins[level + 1] if level + 1 < count else last
            n = counts[end] - counts[begins[level]]
            if n > 0 and sums[end] - sums[begins[level]] > values[kept] * n:
                begins[kept] = begins[level]
                kept += 1
                values[kept] = (sums[end] - sums[begins[level]]) / n
                cost[kept] = 1 - math.log2(n / counts[last])
        count = kept
        if not count or turn == 6:
            break
        cost[0] = -math.log2(max(counts[begins[0]], 1) / counts[last])
        for level in range(count):
            gap = values[level + 1] - values[level]
            worth = values[level] + gap / 2 + price * (cost[level + 1] - cost[level]) / (2 * gap)
            begins[level] = max(_bin(worth, base, last), begins[level - 1] if level else 0)
    return begins[:count], values[1 : count + 1]


@kernel
def _bin(value: float, base: int, last: int) -> int:
    """Return the first bin of magnitudes that are at least about `value`."""
    if value <= 0:
        return 0
    mantissa, exponent = math.frexp(value)
    bits = (exponent + 126) * 64 + math.ceil((2 * mantissa - 1) * 64)
    return min(max(bits - base, 0), last)
