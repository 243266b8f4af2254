"""A layer's centroid table and the thresholds that say which weight belongs to which centroid."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Sorted centroids, of which the one at `zero_index` is zero, and the K - 1 thresholds between their cells.

    A weight x belongs to the centroid whose index is the number of thresholds below x.
    """

    centroids: Values
    thresholds: Values
    zero_index: int

    @classmethod
    def nearest(cls, centroids: NDArray[np.floating], zero_index: int) -> "Cells":
        """Give every weight to its nearest centroid; what is exactly zero goes to the zero index.

        >>> Cells.nearest(np.array([-1.0, 0.0, 3.0]), zero_index=1).thresholds
        array([-0.5,  1.5], dtype=float32)
        """
        table = centroids.astype(np.float32) + np.float32(0)  # no -0.0
        middle = (table[1:].astype(np.float64) + table[:-1]) / 2
        thresholds = middle.astype(np.float32)
        low = np.nextafter(thresholds, np.float32(-np.inf))
        thresholds = np.where(thresholds > middle, low, thresholds)  # x > threshold just where x > middle
        tiny = np.float32(-1e-45)
        thresholds[:zero_index] = np.minimum(thresholds[:zero_index], tiny)
        thresholds[zero_index:] = np.maximum(thresholds[zero_index:], np.float32(0))
        return cls(table, thresholds, zero_index)
