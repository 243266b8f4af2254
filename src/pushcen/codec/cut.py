"""How DivShare cuts a model into fragments: every coordinate is in exactly one, spread evenly, from a shared seed.

Coordinates go in groups of as many as there are parts, and each group is dealt out, one coordinate to a part, beginning
at a part that a hash of seed and group number chooses. So parts are of equal size, neighbours are in different parts, a
part's places need no table, and a pass over them runs through memory in order.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from pushcen.checks import check_count
from pushcen.codec.codebook import Values
from pushcen.codec.jit import kernel

_u64 = np.uint64


@dataclass(frozen=True, slots=True)
class Cut:
    """A way of cutting: into `parts` parts, from a `cut_seed` that all clients share.

    >>> cut = Cut(parts=3, cut_seed=8)
    >>> [cut.places(part, 0, 7).tolist() for part in range(3)]
    [[1, 5], [2, 3], [0, 4, 6]]
    """

    parts: int
    cut_seed: int = 0

    def __post_init__(self) -> None:
        check_count("parts", self.parts, 1, 2**16 - 1)
        check_count("cut_seed", self.cut_seed, 0, 2**64 - 1)

    def check_part(self, part: int) -> None:
        """Refuse a part that there is not."""
        check_count("part", part, 0, self.parts - 1)

    def size(self, part: int, size: int) -> int:
        """Return how many of `size` coordinates are in `part`.

        >>> [Cut(parts=3, cut_seed=8).size(part, 7) for part in range(3)]
        [2, 2, 3]
        """
        groups, over = divmod(size, self.parts)
        return groups + int(_place(_u64(self.cut_seed), groups, part, self.parts) < over)

    def places(self, part: int, begin: int, end: int) -> NDArray[np.int64]:
        """Return which of the coordinates from `begin` up to `end` are in `part`, in order."""
        groups = np.arange(begin // self.parts, -(-end // self.parts))
        found: NDArray[np.int64] = groups * self.parts + _all_places(_u64(self.cut_seed), groups, part, self.parts)
        return found[(found >= begin) & (found < end)]

    def scatter_add(self, values: Values, part: int, into: torch.Tensor, weight: float) -> None:
        """Add `weight` times the values of one part to their places."""
        if into.device.type == "cpu":
            _scatter_add(_u64(self.cut_seed), part, self.parts, values, np.float32(weight), into.numpy())
        else:
            places = torch.from_numpy(self.places(part, 0, into.numel())).to(into.device)
            into.index_add_(0, places, torch.from_numpy(values * np.float32(weight)).to(into.device))


@kernel
def _place(seed, group, part, parts):  # type: ignore[no-untyped-def]
    """Return which place of the group belongs to the part: a rotation by a hash (splitmix64)."""
    z = seed + _u64(group + 1) * _u64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> _u64(30))) * _u64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> _u64(27))) * _u64(0x94D049BB133111EB)
    z ^= z >> _u64(31)
    return np.int64((z % _u64(parts) + _u64(part)) % _u64(parts))


@kernel
def _all_places(seed, groups, part, parts):  # type: ignore[no-untyped-def]
    found = np.empty(groups.size, np.int64)
    for i in range(groups.size):
        found[i] = _place(seed, groups[i], part, parts)
    return found


@kernel
def _scatter_add(seed, part, parts, values, weight, into):  # type: ignore[no-untyped-def]
    for group in range(values.size):
        into[group * parts + _place(seed, group, part, parts)] += weight * values[group]
