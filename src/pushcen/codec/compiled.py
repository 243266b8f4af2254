"""The CPU's inner loops, compiled by numba; `cpu.py` says what they are for and is the only one to call them.

No loop tests an index against its array: a bin is cut off at the outermost, and packed indices have been checked.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from pushcen.codec.cells import Values
from pushcen.codec.jit import kernel

BLOCK = 512
"""Weights worked on at a time, so that what is known of them stays in the innermost cache."""
MIXED = 256
"""Marks a bin that has a threshold in it."""

_i32 = np.int32
_u64 = np.uint64


@kernel
def largest_bits(bits):  # type: ignore[no-untyped-def]
    """Return the bits of the largest magnitude; among floats of one sign, larger bits are a larger number."""
    most = _i32(0)
    for i in range(bits.size):
        most = max(most, _i32(bits[i] & _i32(0x7FFFFFFF)))
    return most


@kernel
def locate(values, bits, knee, base, half, shift, bins):  # type: ignore[no-untyped-def]
    """Find the bin of each value; what lies beyond the outermost bin falls into it."""
    for i in range(values.size):
        steps = _i32(_i32(np.float32(abs(values[i]) + knee).view(np.int32) - base) >> shift)
        steps = min(steps, _i32(half - _i32(1)))
        bins[i] = _i32(half + _i32(steps ^ _i32(bits[i] >> _i32(31))))


@kernel
def fill(values, bits, knee, base, half, shift, counts, sums):  # type: ignore[no-untyped-def]
    """Count and add up the values in each bin; return the bits of the largest magnitude."""
    most = _i32(0)
    bins = np.empty(BLOCK, np.int32)
    at = bins.view(np.uint32)  # unsigned, so that no index is tested for being negative
    for begin in range(0, values.size, BLOCK):
        block = values[begin : begin + BLOCK]
        block_bits = bits[begin : begin + BLOCK]
        locate(block, block_bits, knee, base, half, shift, bins)
        for i in range(block.size):
            counts[at[i]] += np.uint32(1)
        for i in range(block.size):
            sums[at[i]] += block[i]
        for i in range(block.size):
            most = max(most, _i32(block_bits[i] & _i32(0x7FFFFFFF)))
    return most


@kernel
def fill_lookup(thresholds, bits, knee, base, half, shift, lookup):  # type: ignore[no-untyped-def]
    """Write the first index that each bin can have, from the bins of the thresholds, of which the last is infinite."""
    at = np.empty(thresholds.size, np.int32)
    locate(thresholds, bits, knee, base, half, shift, at)
    passed = 0
    for bin in range(lookup.size):
        while at[passed] < bin:
            passed += 1
        lookup[bin] = passed + MIXED if at[passed] == bin else passed


@kernel
def assign(values, bits, knee, base, half, shift, lookup, thresholds, indices):  # type: ignore[no-untyped-def]
    """Write the index of each value: how many thresholds lie below it."""
    bins = np.empty(BLOCK, np.int32)
    at = bins.view(np.uint32)
    for begin in range(0, values.size, BLOCK):
        block = values[begin : begin + BLOCK]
        locate(block, bits[begin : begin + BLOCK], knee, base, half, shift, bins)
        target = indices[begin : begin + BLOCK]
        for i in range(block.size):
            index = lookup[at[i]]
            if index >= MIXED:
                step = np.uint32(index & np.uint16(0xFF))
                while block[i] > thresholds[step]:
                    step += np.uint32(1)
                index = np.uint16(step)
            target[i] = np.uint8(index)


@kernel
def assign_packed(values, bits, knee, base, half, shift, lookup, thresholds, width, words):  # type: ignore[no-untyped-def]
    """Assign a block, then squeeze eight indices of a byte each into one word of eight times `width` bits."""
    indices = np.zeros(BLOCK, np.uint8)
    low1, low2, low4 = _u64(0x00FF00FF00FF00FF), _u64(0x0000FFFF0000FFFF), _u64(0x00000000FFFFFFFF)
    by1, by2, by4 = _u64(8 - width), _u64(2 * (8 - width)), _u64(4 * (8 - width))
    for begin in range(0, values.size, BLOCK):
        end = min(begin + BLOCK, values.size)
        assign(values[begin:end], bits[begin:end], knee, base, half, shift, lookup, thresholds, indices)
        indices[end - begin :] = 0
        block = words[begin // 8 : -(-end // 8)]
        eights = indices.view(np.uint64)
        for group in range(block.size):
            word = eights[group]
            word = (word & low1) | ((word & ~low1) >> by1)
            word = (word & low2) | ((word & ~low2) >> by2)
            block[group] = (word & low4) | ((word & ~low4) >> by4)


@kernel
def index(packed, width, i):  # type: ignore[no-untyped-def]
    """Return one packed index."""
    byte, bit = i * width // 8, i * width % 8
    word = _u64(packed[byte]) >> _u64(bit)
    if bit + width > 8:
        word |= _u64(packed[byte + 1]) << _u64(8 - bit)
    return word & _u64((1 << width) - 1)


@cache
def adder(width: int) -> Callable[[NDArray[np.uint8], NDArray[np.uint64], Values, NDArray[np.int64], Values], None]:
    """Compile for one width, so that every shift in the inner loop is a constant.

    Where the table of all pairs of centroids fits the cache, two indices are looked up at once. `words` are the packed
    bytes as a word at every byte; what they cannot reach without passing the end is added one by one.
    """
    mask, one = _u64((1 << width) - 1), _u64(width)
    both, two = _u64((1 << 2 * width) - 1), _u64(2 * width)

    @kernel
    def add_pairs(words, begin, table, blocks, into):  # type: ignore[no-untyped-def]
        two_floats = np.empty((table.size, table.size, 2), np.float32)
        two_floats[:, :, 0] = table
        for i in range(table.size):
            two_floats[i, :, 1] = table[i]
        pairs = two_floats.reshape(-1).view(np.uint64)
        looked_up = np.empty(BLOCK // 2, np.uint64)
        floats = looked_up.view(np.float32)
        for block in range(blocks):
            first = begin + block * (BLOCK // 8) * width
            for group in range(BLOCK // 8):
                word = words[first + group * width]
                for i in range(4):
                    looked_up[4 * group + i] = pairs[(word >> _u64(i) * two) & both]
            target = into[block * BLOCK : (block + 1) * BLOCK]
            for i in range(BLOCK):
                target[i] += floats[i]

    @kernel
    def add_singles(words, begin, table, blocks, into):  # type: ignore[no-untyped-def]
        for group in range(blocks * (BLOCK // 8)):
            word = words[begin + group * width]
            for i in range(8):
                into[8 * group + i] += table[(word >> _u64(i) * one) & mask]

    add_blocks = add_pairs if width <= 6 else add_singles

    @kernel
    def add_layers(packed, words, tables, spans, into):  # type: ignore[no-untyped-def]
        begin = 0
        for layer in range(len(spans)):
            target = into[spans[layer, 0] : spans[layer, 1]]
            end = begin + (target.size * width + 7) // 8
            groups = min(target.size // 8, max(words.size - begin + width - 1, 0) // width)
            blocks = groups // (BLOCK // 8)
            if blocks:
                add_blocks(words, begin, tables[layer], blocks, target)
            rest = packed[begin:end]
            for i in range(blocks * BLOCK, target.size):
                target[i] += tables[layer, index(rest, width, i)]
            begin = end

    return add_layers


@kernel
def highest_index(packed, width, count):  # type: ignore[no-untyped-def]
    """Return the highest packed index."""
    highest = _u64(0)
    for i in range(count):
        highest = max(highest, index(packed, width, i))
    return highest


@kernel
def add_values(values, weight, spans, into):  # type: ignore[no-untyped-def]
    """Add weighted values, span after span."""
    at = 0
    for span in range(len(spans)):
        target = into[spans[span, 0] : spans[span, 1]]
        for i in range(target.size):
            target[i] += weight * values[at + i]
        at += target.size
