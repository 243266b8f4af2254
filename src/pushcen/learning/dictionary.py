"""The centroid dictionary: every layer's table, averaged over neighbours by the weights of their models.

Tables are rows of one array, in the schema's order: a dozen messages cost a dozen small additions.
"""

import numpy as np
from numpy.typing import NDArray

Tables = NDArray[np.float32]
_NOTHING = np.zeros(())


class TableSum:
    """A weighted sum of centroid tables.

    >>> pool = TableSum()
    >>> pool.add(1, np.array([[-1, 0, 3]], np.float32))
    >>> pool.add(3, np.array([[-2, 0, 1]], np.float32))
    >>> pool.mean()
    array([[-1.75,  0.  ,  1.5 ]], dtype=float32)
    """

    def __init__(self, total: NDArray[np.float64] = _NOTHING, weight: int = 0) -> None:
        self.total, self.weight = total, weight

    def add(self, weight: int, tables: Tables) -> None:
        """Add `weight` times the tables."""
        self.total = self.total + np.float64(weight) * tables
        self.weight += weight

    def merge(self, other: "TableSum") -> None:
        """Add another sum."""
        self.total = self.total + other.total
        self.weight += other.weight

    def mean(self) -> Tables:
        """Return the weighted mean (G in the paper)."""
        return np.asarray(self.total / float(self.weight), np.float32)


def with_zero(tables: Tables) -> Tables:
    """Set the entry nearest zero to zero: where neighbours' zeros sat at different indices, it has drifted off.

    >>> with_zero(np.array([[-1, 0.25, 3]], np.float32))
    array([[-1.,  0.,  3.]], dtype=float32)
    """
    mended = tables.copy()
    np.put_along_axis(mended, np.abs(tables).argmin(axis=1, keepdims=True), 0.0, axis=1)
    return mended
