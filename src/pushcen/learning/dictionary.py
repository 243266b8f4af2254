"""The centroid dictionary: every layer's table, averaged over neighbours by the weights of their models."""

from collections.abc import Mapping

import numpy as np
import torch

Tables = Mapping[str, torch.Tensor]


class TableSum:
    """A weighted sum of centroid tables.

    >>> pool = TableSum()
    >>> pool.add(1, {"fc": torch.tensor([-1.0, 0.0, 3.0])})
    >>> pool.add(3, {"fc": torch.tensor([-2.0, 0.0, 1.0])})
    >>> pool.mean()["fc"]
    tensor([-1.7500,  0.0000,  1.5000])
    """

    def __init__(self) -> None:
        self.weight = 0
        self._sums: dict[str, np.ndarray] = {}

    def add(self, weight: int, tables: Tables) -> None:
        """Add `weight` times the tables."""
        if not tables or not weight:
            return
        for name, table in tables.items():
            total = self._sums.setdefault(name, np.zeros(table.numel()))
            total += float(weight) * table.numpy()
        self.weight += weight

    def mean(self) -> dict[str, torch.Tensor]:
        """Return the weighted mean (G in the paper)."""
        return {name: torch.from_numpy(total / float(self.weight)).float() for name, total in self._sums.items()}

    def merge(self, other: "TableSum") -> None:
        """Add another sum."""
        for name, total in other._sums.items():
            self._sums[name] = self._sums[name] + total if name in self._sums else total.copy()
        self.weight += other.weight

    def save(self) -> tuple[dict[str, torch.Tensor], int]:
        """Give the sums and their weight."""
        return {name: torch.from_numpy(total.copy()) for name, total in self._sums.items()}, self.weight

    @classmethod
    def restored(cls, sums: Tables, weight: int) -> "TableSum":
        """Make the sum that `save` saw."""
        pool = cls()
        pool._sums = {name: total.double().numpy().copy() for name, total in sums.items()}
        pool.weight = weight
        return pool


def with_zero(tables: Tables) -> dict[str, torch.Tensor]:
    """Set the entry nearest zero to zero: where neighbours' zeros sat at different indices, it has drifted off.

    >>> with_zero({"fc": torch.tensor([-1.0, 0.25, 3.0])})["fc"]
    tensor([-1.,  0.,  3.])
    """
    mended = {}
    for name, table in tables.items():
        mended[name] = table.clone()
        mended[name][int(table.abs().argmin())] = 0.0
    return mended
