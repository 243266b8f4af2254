"""The passes over weights and packed indices, for the CPU. `anywhere.py` has the same for other devices.

In one dimension the nearest centroid is a question of thresholds, and the bin of a weight nearly always answers it:
`lookup[bin]` is the first index the bin can have, and only a bin with a threshold in it takes a comparison. So no
pass costs more with more clusters, and no N x K matrix is ever made. Work goes block by block, to stay in the cache.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pushcen.codec.bins import Bins
from pushcen.codec.cells import Cells, Values
from pushcen.codec.jit import kernel

Bytes = NDArray[np.uint8]
SPARE = 8
"""Packed indices are written and read as words of eight bytes, which may pass their end by no more than this."""

_BLOCK = 512
_MIXED = 256  # marks a bin that has a threshold in it
_i32 = np.int32
_u64 = np.uint64


def largest(weights: torch.Tensor) -> float:
    """Return the largest magnitude; infinity if anything is not finite.

    >>> largest(torch.tensor([1.0, -3.0])), largest(torch.tensor([1.0, float("nan")]))
    (3.0, inf)
    """
    return largest_value(weights.numpy())


def largest_value(values: Values) -> float:
    """Return what `largest` does, for an array."""
    bits = _largest(values.view(np.int32))
    return float(np.int32(bits).view(np.float32)) if bits < 0x7F800000 else np.inf


def histogram(weights: torch.Tensor, bins: Bins) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Count and add up the weights in each bin.

    >>> bins = Bins(np.float32(1), shift=22, half=2)
    >>> histogram(torch.tensor([-0.75, 0.25, 0.25]), bins)
    (array([1., 0., 2., 0.]), array([-0.75,  0.  ,  0.5 ,  0.  ]))
    """
    counts, sums = np.zeros(2 * bins.half, np.uint32), np.zeros(2 * bins.half)
    _fill(*_views(weights, bins), counts, sums)
    return counts.astype(np.float64), sums


def assign(weights: torch.Tensor, cells: Cells, bins: Bins) -> torch.Tensor:
    """Return each weight's index, one byte each.

    >>> cells = Cells.nearest(np.array([-1.0, 0.0, 3.0]), zero_index=1)
    >>> assign(torch.tensor([-9.0, 0.0, 0.1, 1.6]), cells, Bins(np.float32(1), shift=14, half=2000))
    tensor([0, 1, 1, 2], dtype=torch.uint8)
    """
    indices = torch.empty(weights.numel(), dtype=torch.uint8)
    _assign(*_prepared(weights, cells, bins), indices.numpy())
    return indices


def assign_packed(weights: torch.Tensor, cells: Cells, bins: Bins, bits: int, out: Bytes) -> None:
    """Write each weight's index at `bits` bits to the start of `out`: `assign` and packing in one pass.

    `out` needs `SPARE` bytes more than that, which are overwritten.
    """
    words = _overlapping(out, bits, -(-weights.numel() // 8))
    _assign_packed(*_prepared(weights, cells, bins), bits, words)


def add_packed(packed: Bytes, bits: int, table: Values, into: torch.Tensor) -> None:
    """Add `table[index]` to `into`, straight from the packed indices.

    >>> into = torch.zeros(3)
    >>> add_packed(np.array([0b10_00_01], np.uint8), 2, np.array([0, 5, 7], np.float32), into)
    >>> into
    tensor([5., 0., 7.])
    """
    full = np.zeros(1 << bits, np.float32)
    full[: table.size] = table
    values = into.numpy()
    whole = max(0, (packed.size - SPARE) // bits)  # groups that can be read as a word without passing the end
    blocks = whole // (_BLOCK // 8)
    if blocks:
        _adder(bits)(_overlapping(packed, bits, whole), full, blocks, values)
    rest = blocks * (_BLOCK // 8)
    _add_rest(packed[rest * bits :], bits, full, values[8 * rest :])


def add_values(values: Values, weight: float, into: torch.Tensor) -> None:
    """Add `weight * values` to `into`.

    >>> into = torch.ones(2)
    >>> add_values(np.array([1, 2], np.float32), 0.5, into)
    >>> into
    tensor([1.5000, 2.0000])
    """
    _add_values(values, np.float32(weight), into.numpy())


def highest_index(packed: Bytes, bits: int, count: int) -> int:
    """Return the highest of `count` packed indices.

    >>> highest_index(np.array([0b10_00_01], np.uint8), 2, 3)
    2
    """
    return int(_highest_index(packed, bits, count))


def _overlapping(packed: Bytes, bits: int, groups: int) -> NDArray[np.uint64]:
    """See eight indices as the low bits of one word: a word at every `bits` bytes, each reaching into the next."""
    return np.ndarray((groups,), np.uint64, packed.data, 0, (bits,))


def _views(weights: torch.Tensor, bins: Bins) -> tuple[Any, ...]:
    values = weights.numpy()
    return values, values.view(np.int32), bins.knee, _i32(bins.base), _i32(bins.half), _i32(bins.shift)


def _prepared(weights: torch.Tensor, cells: Cells, bins: Bins) -> tuple[Any, ...]:
    lookup = np.empty(2 * bins.half, np.uint16)
    _fill_lookup(bins.locate(cells.thresholds), lookup)
    return *_views(weights, bins), lookup, np.append(cells.thresholds, np.float32(np.inf))


@kernel
def _largest(bits):  # type: ignore[no-untyped-def]
    most = _i32(0)
    for b in bits:
        most = max(most, _i32(b & _i32(0x7FFFFFFF)))
    return most


@kernel
def _locate(values, bits, knee, base, half, shift, bins):  # type: ignore[no-untyped-def]
    for i in range(values.size):
        steps = _i32(_i32(np.float32(abs(values[i]) + knee).view(np.int32) - base) >> shift)
        bins[i] = _i32(half + _i32(steps ^ _i32(bits[i] >> _i32(31))))


@kernel
def _fill(values, bits, knee, base, half, shift, counts, sums):  # type: ignore[no-untyped-def]
    bins = np.empty(_BLOCK, np.int32)
    at = bins.view(np.uint32)  # unsigned, so that no index is tested for being negative
    for begin in range(0, values.size, _BLOCK):
        block = values[begin : begin + _BLOCK]
        _locate(block, bits[begin : begin + _BLOCK], knee, base, half, shift, bins)
        for i in range(block.size):
            counts[at[i]] += np.uint32(1)
        for i in range(block.size):
            sums[at[i]] += block[i]


@kernel
def _fill_lookup(thresholds, lookup):  # type: ignore[no-untyped-def]
    passed = 0
    for bin in range(lookup.size):
        while passed < thresholds.size and thresholds[passed] < bin:
            passed += 1
        mixed = passed < thresholds.size and thresholds[passed] == bin
        lookup[bin] = passed + _MIXED if mixed else passed


@kernel
def _assign(values, bits, knee, base, half, shift, lookup, thresholds, indices):  # type: ignore[no-untyped-def]
    bins = np.empty(_BLOCK, np.int32)
    at = bins.view(np.uint32)
    for begin in range(0, values.size, _BLOCK):
        block = values[begin : begin + _BLOCK]
        _locate(block, bits[begin : begin + _BLOCK], knee, base, half, shift, bins)
        target = indices[begin : begin + _BLOCK]
        for i in range(block.size):
            index = lookup[at[i]]
            if index >= _MIXED:
                step = np.uint32(index & np.uint16(0xFF))
                while block[i] > thresholds[step]:
                    step += np.uint32(1)
                index = np.uint16(step)
            target[i] = np.uint8(index)


@kernel
def _assign_packed(values, bits, knee, base, half, shift, lookup, thresholds, width, words):  # type: ignore[no-untyped-def]
    indices = np.zeros(_BLOCK, np.uint8)
    low1, low2, low4 = _u64(0x00FF00FF00FF00FF), _u64(0x0000FFFF0000FFFF), _u64(0x00000000FFFFFFFF)
    by1, by2, by4 = _u64(8 - width), _u64(2 * (8 - width)), _u64(4 * (8 - width))
    for begin in range(0, values.size, _BLOCK):
        end = min(begin + _BLOCK, values.size)
        _assign(values[begin:end], bits[begin:end], knee, base, half, shift, lookup, thresholds, indices)
        indices[end - begin :] = 0
        block = words[begin // 8 : -(-end // 8)]
        eights = indices.view(np.uint64)
        for group in range(block.size):
            word = eights[group]
            word = (word & low1) | ((word & ~low1) >> by1)
            word = (word & low2) | ((word & ~low2) >> by2)
            block[group] = (word & low4) | ((word & ~low4) >> by4)


@cache
def _adder(width: int) -> Callable[[NDArray[np.uint64], Values, int, Values], None]:
    """Compile for one width, so that every shift in the inner loop is a constant.

    Where the table of all pairs of centroids fits the cache, two indices are looked up at once.
    """
    mask, one = _u64((1 << width) - 1), _u64(width)
    both, two = _u64((1 << 2 * width) - 1), _u64(2 * width)

    @kernel
    def add_pairs(words, table, blocks, into):  # type: ignore[no-untyped-def]
        two_floats = np.empty((table.size, table.size, 2), np.float32)
        two_floats[:, :, 0] = table
        for i in range(table.size):
            two_floats[i, :, 1] = table[i]
        pairs = two_floats.reshape(-1).view(np.uint64)
        looked_up = np.empty(_BLOCK // 2, np.uint64)
        floats = looked_up.view(np.float32)
        for block in range(blocks):
            packed = words[block * (_BLOCK // 8) : (block + 1) * (_BLOCK // 8)]
            for group in range(_BLOCK // 8):
                for i in range(4):
                    looked_up[4 * group + i] = pairs[(packed[group] >> _u64(i) * two) & both]
            target = into[block * _BLOCK : (block + 1) * _BLOCK]
            for i in range(_BLOCK):
                target[i] += floats[i]

    @kernel
    def add_singles(words, table, blocks, into):  # type: ignore[no-untyped-def]
        for group in range(blocks * (_BLOCK // 8)):
            for i in range(8):
                into[8 * group + i] += table[(words[group] >> _u64(i) * one) & mask]

    return add_pairs if width <= 6 else add_singles


@kernel
def _index(packed, width, i):  # type: ignore[no-untyped-def]
    byte, bit = i * width // 8, i * width % 8
    word = _u64(packed[byte]) >> _u64(bit)
    if bit + width > 8:
        word |= _u64(packed[byte + 1]) << _u64(8 - bit)
    return word & _u64((1 << width) - 1)


@kernel
def _add_rest(packed, width, table, into):  # type: ignore[no-untyped-def]
    for i in range(into.size):
        into[i] += table[_index(packed, width, i)]


@kernel
def _highest_index(packed, width, count):  # type: ignore[no-untyped-def]
    highest = _u64(0)
    for i in range(count):
        highest = max(highest, _index(packed, width, i))
    return highest


@kernel
def _add_values(values, weight, into):  # type: ignore[no-untyped-def]
    for i in range(into.size):
        into[i] += weight * values[i]
