"""A layer's centroid table and the thresholds that say which weight belongs to which centroid."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pushcen.codec.jit import kernel

Values = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Codebook:
    """Sorted centroids, of which the one at `zero_index` is zero, and the K - 1 thresholds between their cells.

    A weight x belongs to the centroid whose index is the number of thresholds below x.
    """

    centroids: Values
    thresholds: Values
    zero_index: int

    @classmethod
    def nearest(cls, centroids: NDArray[np.floating], zero_index: int) -> "Codebook":
        """Return the codebook of nearest centroids; what is exactly zero belongs to the zero index.

        >>> Codebook.nearest(np.array([-1.0, 0.0, 3.0]), zero_index=1).thresholds
        array([-0.5,  1.5], dtype=float32)
        """
        table = centroids.astype(np.float32) + np.float32(0)  # no -0.0
        return cls(table, _thresholds(table, zero_index), zero_index)


@kernel
def _thresholds(table: Values, zero_index: int) -> Values:
    thresholds = np.empty(table.size - 1, np.float32)
    for i in range(thresholds.size):
        middle = (np.float64(table[i]) + np.float64(table[i + 1])) / 2
        threshold = np.float32(middle)
        if threshold > middle:  # x > threshold just where x > middle
            threshold = np.nextafter(threshold, np.float32(-np.inf))
        thresholds[i] = min(threshold, np.float32(-1e-45)) if i < zero_index else max(threshold, np.float32(0))
    return thresholds
