"""The passes over weights and packed indices, for the CPU. `torch_kernels.py` has the same for other devices.

In one dimension the nearest centroid is a question of thresholds, and the bin of a weight nearly always answers it:
`lookup[bin]` is the first index the bin can have, and only a bin with a threshold in it takes a comparison. So no
pass costs more with more clusters, and no N x K matrix is ever made. Work goes block by block, to stay in the cache.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pushcen.codec import numba_loops
from pushcen.codec.bins import LIMIT, Bins
from pushcen.codec.codebook import Codebook, Values
from pushcen.codec.jit import read_only
from pushcen.codec.schema import Spans

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]
SPARE = 8
"""Packed indices are written and read as words of eight bytes, which may pass their end by no more than this."""

_PAIRED = 6  # bits of an index: up to here a table of all pairs fits the cache
_WRONG = ("", "value", "zero", "order", "end")
_i32 = np.int32


def largest(weights: torch.Tensor) -> float:
    """Return the largest magnitude; infinity if anything is not finite.

    >>> largest(torch.tensor([1.0, -3.0])), largest(torch.tensor([1.0, float("nan")]))
    (3.0, inf)
    """
    return largest_value(weights.numpy())


def largest_value(values: Values) -> float:
    """Return what `largest` does, for an array."""
    return _magnitude(numba_loops.largest_bits(values.view(np.int32)))


def histogram(weights: torch.Tensor, bins: Bins) -> tuple[Floats, Floats, float]:
    """Count and add up the weights in each bin; return that, and what `largest` does.

    What lies beyond the outermost bin falls into it.

    >>> bins = Bins(np.float32(1), shift=22, half=2)
    >>> histogram(torch.tensor([-0.75, 0.25, 0.25, 9.0]), bins)
    (array([1., 0., 2., 1.]), array([-0.75,  0.  ,  0.5 ,  9.  ]), 9.0)
    """
    counts, sums = np.zeros(2 * bins.half, np.uint32), np.zeros(2 * bins.half)
    most = numba_loops.fill(*_views(weights, bins), counts, sums, *_room(numba_loops.BLOCK, np.int32, np.uint32))
    return counts.astype(np.float64), sums, _magnitude(most)


def assign(weights: torch.Tensor, cells: Codebook, bins: Bins) -> torch.Tensor:
    """Return each weight's index, one byte each.

    >>> cells = Codebook.nearest(np.array([-1.0, 0.0, 3.0]), zero_index=1)
    >>> assign(torch.tensor([-9.0, 0.0, 0.1, 1.6]), cells, Bins(np.float32(1), shift=14, half=2000))
    tensor([0, 1, 1, 2], dtype=torch.uint8)
    """
    indices = torch.empty(weights.numel(), dtype=torch.uint8)
    numba_loops.assign(*_prepared(weights, cells, bins), indices.numpy())
    return indices


def assign_packed(weights: torch.Tensor, cells: Codebook, bins: Bins, bits: int, out: Bytes) -> None:
    """Write each weight's index at `bits` bits to the start of `out`: `assign` and packing in one pass.

    `out` needs `SPARE` bytes more than that, which are overwritten.
    """
    words = _overlapping(out, bits, -(-weights.numel() // 8))
    indices = _room(numba_loops.BLOCK, np.uint8, np.uint64)
    numba_loops.assign_packed(*_prepared(weights, cells, bins), *indices, bits, words)


def add_packed(packed: Bytes, bits: int, tables: Values, spans: Spans, into: torch.Tensor) -> None:
    """Add `table[index]` to each span of `into`, straight from the packed indices, which stand layer after layer.

    >>> into = torch.zeros(4)
    >>> add_packed(np.array([0b10_00_01], np.uint8), 2, np.array([[0, 5, 7]], np.float32), np.array([[1, 4]]), into)
    >>> into
    tensor([0., 5., 0., 7.])
    """
    if tables.shape[1] < 1 << bits:
        tables = np.pad(tables, ((0, 0), (0, (1 << bits) - tables.shape[1])))
    words = _overlapping(packed, 1, max(0, packed.size - SPARE))
    pairs = _room(2 << 2 * bits if bits <= _PAIRED else 0, np.float32, np.uint64)
    block = _room(numba_loops.BLOCK, np.float32, np.uint64)
    numba_loops.add_layers(read_only(packed), read_only(words), bits, tables, spans, *pairs, *block, into.numpy())


def add_values(values: Values, weight: float, spans: Spans, into: torch.Tensor) -> None:
    """Add `weight * values` to the spans of `into`, one after the other.

    >>> into = torch.ones(4)
    >>> add_values(np.array([1, 2], np.float32), 0.5, np.array([[0, 1], [3, 4]]), into)
    >>> into
    tensor([1.5000, 1.0000, 1.0000, 2.0000])
    """
    numba_loops.add_values(read_only(values), np.float32(weight), spans, into.numpy())


def check_tables(
    values: Values, zeros: Bytes, clusters: int, packed: Bytes, last: NDArray[np.int64], used: Bytes
) -> tuple[str, int]:
    """Return what is wrong first, if anything: "value", "zero", "order" or "end"; and the highest zero index, or the
    layer whose packed indices do not end in zero bits.

    `values` are the centroids, with no zero among them, and then others.

    >>> values, zeros, packed = np.array([-1, 2, 7], np.float32), np.array([1], np.uint8), np.array([0b1000], np.uint8)
    >>> [check_tables(values, zeros + i, 3, packed, np.array([0]), zeros * 4) for i in range(3)]
    [('', 0), ('order', 0), ('zero', 3)]
    """
    kind, which = numba_loops.check_tables(values, zeros.size, zeros, clusters, LIMIT, packed, last, used)
    return _WRONG[kind], which


def highest_index(packed: Bytes, bits: int, count: int) -> int:
    """Return the highest of `count` packed indices.

    >>> highest_index(np.array([0b10_00_01], np.uint8), 2, 3)
    2
    """
    return int(numba_loops.highest_index(read_only(packed), bits, count))


def _magnitude(bits: int) -> float:
    return float(np.int32(bits).view(np.float32)) if bits < 0x7F800000 else np.inf


def _overlapping(packed: Bytes, step: int, count: int) -> NDArray[np.uint64]:
    """See bytes as words, of which one begins at every `step`th and reaches into the next."""
    return np.ndarray((count,), np.uint64, packed.data, 0, (step,))


def _views(weights: torch.Tensor, bins: Bins) -> tuple[Any, ...]:
    values = weights.numpy()
    return values, values.view(np.int32), bins.knee, _i32(bins.base), _i32(bins.half), _i32(bins.shift)


def _prepared(weights: torch.Tensor, cells: Codebook, bins: Bins) -> tuple[Any, ...]:
    thresholds = np.full(cells.thresholds.size + 1, np.inf, np.float32)
    thresholds[:-1] = cells.thresholds
    views, lookup = _views(weights, bins), np.empty(2 * bins.half, np.uint16)
    places = np.empty(thresholds.size, np.int32)
    numba_loops.fill_lookup(thresholds, thresholds.view(np.int32), *views[2:], places, lookup)
    return *views, lookup, thresholds, *_room(numba_loops.BLOCK, np.int32, np.uint32)


def _room(size: int, kind: type[np.generic], other: type[np.generic]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return room for so many of a kind, and the same room seen as another."""
    room = np.empty(size, kind)
    return room, room.view(other)
