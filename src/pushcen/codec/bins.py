"""Bins for a fine histogram that one far outlier cannot spoil.

A value x falls into the bin of the leading bits of the float |x| + knee. Below the knee that is a linear scale, above
it a logarithmic one, with `2 ** (23 - shift)` bins to each octave: a weight that lies far out costs a few more bins and
takes nothing from the others.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

LIMIT = 2.0**60
"""No weight may be larger than this: a weighted sum of models, in float32, then cannot overflow."""

_OCTAVES = 20
_SAMPLE = 256


@dataclass(frozen=True)
class Bins:
    """`2 * half` bins, in the order of the values; zero falls into bin `half`."""

    knee: np.float32
    shift: int
    half: int

    @classmethod
    def fit(cls, sample: NDArray[np.float32], largest: float, clusters: int) -> "Bins":
        """Choose bins for weights of which `sample` is a part and `largest` the largest magnitude.

        >>> Bins.fit(np.array([-1, 0, 1, 3], np.float32), largest=1e4, clusters=32).half
        6770
        """
        used = np.count_nonzero(sample)
        typical = largest
        if used:
            middle = sample.size - used + used // 2  # zeros are the smallest
            magnitudes = np.abs(sample)
            magnitudes.partition(middle)
            typical = float(magnitudes[middle])
        knee = np.float32(max(typical, largest * 2.0**-_OCTAVES, 2.0**-100))
        shift = 14 if clusters <= 64 else 13  # finer bins than needed would not stay in the innermost cache
        top = (_bits(np.float32(largest) + knee) - _bits(knee)) >> shift
        return cls(knee, shift, top + 1)

    @cached_property
    def base(self) -> int:
        """The bits of the knee: those of the first bin's lower edge."""
        return _bits(self.knee)


def sample_stride(size: int) -> int:
    """Return the stride that takes about 256 of `size` values.

    >>> sample_stride(10), sample_stride(10_000_000)
    (1, 39062)
    """
    return max(1, size // _SAMPLE)


def _bits(value: np.float32) -> int:
    return int(value.view(np.int32))
