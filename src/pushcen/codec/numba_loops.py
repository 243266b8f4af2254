"""The CPU's inner loops, compiled by numba; `numba_kernels.py` says what they are for and is the only one to call them.

What a loop needs room for is given to it, in each of the types that it is seen as: that is quicker to compile. No loop
tests an index against its array: a bin is cut off at the outermost, and packed indices have been checked.
"""

import numpy as np

from pushcen.codec.jit import inner, kernel

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


@inner
def locate(values, bits, knee, base, half, shift, bins):  # type: ignore[no-untyped-def]
    """Find the bin of each value; what lies beyond the outermost bin falls into it."""
    for i in range(values.size):
        steps = _i32(_i32(np.float32(abs(values[i]) + knee).view(np.int32) - base) >> shift)
        steps = min(steps, _i32(half - _i32(1)))
        bins[i] = _i32(half + _i32(steps ^ _i32(bits[i] >> _i32(31))))


@kernel
def fill(values, bits, knee, base, half, shift, counts, sums, bins, at):  # type: ignore[no-untyped-def]
    """Count and add up the values in each bin; return the bits of the largest magnitude.

    `at` is `bins`, unsigned, so that no index is tested for being negative.
    """
    most = _i32(0)
    for begin in range(0, values.size, BLOCK):
        block = values[begin : begin + BLOCK]
        block_bits = bits[begin : begin + BLOCK]
        locate(block, block_bits, knee, base, half, shift, bins)
        for i in range(block.size):
            counts[at[i]] += np.uint32(1)
            sums[at[i]] += block[i]
        for i in range(block.size):
            most = max(most, _i32(block_bits[i] & _i32(0x7FFFFFFF)))
    return most


@kernel
def fill_lookup(thresholds, bits, knee, base, half, shift, at, lookup):  # type: ignore[no-untyped-def]
    """Write the first index that each bin can have, from the bins of the thresholds, of which the last is infinite."""
    locate(thresholds, bits, knee, base, half, shift, at)
    passed = 0
    for bin in range(lookup.size):
        while at[passed] < bin:
            passed += 1
        lookup[bin] = passed + MIXED if at[passed] == bin else passed


@inner
def _assign_block(block, bits, knee, base, half, shift, lookup, thresholds, bins, at, target):  # type: ignore[no-untyped-def]
    locate(block, bits, knee, base, half, shift, bins)
    for i in range(block.size):
        index = lookup[at[i]]
        if index >= MIXED:
            step = np.uint32(index & np.uint16(0xFF))
            step += np.uint32(block[i] > thresholds[step])  # as good as random: no branch, and nearly always enough
            while block[i] > thresholds[step]:
                step += np.uint32(1)
            index = np.uint16(step)
        target[i] = np.uint8(index)


@kernel
def assign(values, bits, knee, base, half, shift, lookup, thresholds, bins, at, indices):  # type: ignore[no-untyped-def]
    """Write the index of each value: how many thresholds lie below it."""
    for begin in range(0, values.size, BLOCK):
        end = min(begin + BLOCK, values.size)
        block, block_bits, target = values[begin:end], bits[begin:end], indices[begin:end]
        _assign_block(block, block_bits, knee, base, half, shift, lookup, thresholds, bins, at, target)


@kernel
def assign_packed(  # type: ignore[no-untyped-def]
    values, bits, knee, base, half, shift, lookup, thresholds, bins, at, indices, eights, width, words
):
    """Assign a block, then squeeze eight indices of a byte each into one word of eight times `width` bits.

    `eights` are the block's `indices` as words.
    """
    low1, low2, low4 = _u64(0x00FF00FF00FF00FF), _u64(0x0000FFFF0000FFFF), _u64(0x00000000FFFFFFFF)
    by1, by2, by4 = _u64(8 - width), _u64(2 * (8 - width)), _u64(4 * (8 - width))
    for begin in range(0, values.size, BLOCK):
        end = min(begin + BLOCK, values.size)
        values_now, bits_now = values[begin:end], bits[begin:end]
        _assign_block(values_now, bits_now, knee, base, half, shift, lookup, thresholds, bins, at, indices)
        for i in range(end - begin, BLOCK):
            indices[i] = 0
        block = words[begin // 8 : -(-end // 8)]
        for group in range(block.size):
            word = eights[group]
            word = (word & low1) | ((word & ~low1) >> by1)
            word = (word & low2) | ((word & ~low2) >> by2)
            block[group] = (word & low4) | ((word & ~low4) >> by4)


@inner
def index(packed, width, at):  # type: ignore[no-untyped-def]
    """Return the packed index that begins at a bit."""
    byte, bit = at // 8, at % 8
    word = _u64(packed[byte]) >> _u64(bit)
    if bit + width > 8:
        word |= _u64(packed[byte + 1]) << _u64(8 - bit)
    return word & _u64((1 << width) - 1)


@kernel
def add_layers(  # type: ignore[no-untyped-def]
    packed, words, width, tables, spans, two_floats, pairs, floats, looked_up, into
):
    """Add each layer's values to its span of `into`, looked up by packed indices.

    Where the table of all pairs of centroids fits the cache, two indices are looked up at once: there is room for it in
    `two_floats`, seen as words in `pairs`, and for a block of what was looked up in `floats`. `words` are the packed
    bytes as a word at every byte; what they cannot reach without passing the end is added one by one.
    """
    size = tables.shape[1]
    paired = two_floats.size > 0
    one, mask, two, both = _u64(width), _u64((1 << width) - 1), _u64(2 * width), _u64((1 << 2 * width) - 1)
    begin = 0
    for layer in range(len(spans)):
        first, last = spans[layer, 0], spans[layer, 1]
        groups = min((last - first) // 8, max(words.size - begin + width - 1, 0) // width)
        blocks = groups // (BLOCK // 8)
        if blocks and paired:
            for i in range(size):
                for j in range(size):
                    two_floats[2 * (i * size + j)] = tables[layer, j]
                    two_floats[2 * (i * size + j) + 1] = tables[layer, i]
        for block in range(blocks):
            at = begin + block * (BLOCK // 8) * width
            target = into[first + block * BLOCK : first + (block + 1) * BLOCK]
            if paired:
                for group in range(BLOCK // 8):
                    word = words[at + group * width]
                    for i in range(4):
                        looked_up[4 * group + i] = pairs[(word >> _u64(i) * two) & both]
                for i in range(BLOCK):
                    target[i] += floats[i]
            else:
                for group in range(BLOCK // 8):
                    word = words[at + group * width]
                    for i in range(8):
                        target[8 * group + i] += tables[layer, (word >> _u64(i) * one) & mask]
        for i in range(blocks * BLOCK, last - first):
            into[first + i] += tables[layer, index(packed, width, 8 * begin + i * width)]
        begin += ((last - first) * width + 7) // 8


@kernel
def check_tables(values, tables, zeros, clusters, limit, packed, last, used):  # type: ignore[no-untyped-def]
    """Return what is wrong first: 1 for a value, 2 for a zero index, 3 for an order, 4 for the end of a layer, 0 for
    nothing; and the highest zero index, or the layer.

    `values` begins with the tables, each of which is without its zero.
    """
    beyond = 0
    for i in range(values.size):
        beyond += not abs(values[i]) <= limit  # true of what is not a number, too
    if beyond:
        return 1, 0
    highest = 0
    for layer in range(tables):
        highest = max(highest, zeros[layer])
    if highest >= clusters:
        return 2, highest
    falls = 0
    for layer in range(tables):
        first, zero = layer * (clusters - 1), layer * (clusters - 1) + zeros[layer]
        end = first + clusters - 1
        for i in range(first + 1, end):
            falls += values[i] < values[i - 1]
        if zero > first:
            falls += values[zero - 1] > 0
        if zero < end:
            falls += values[zero] < 0
    if falls:
        return 3, 0
    for layer in range(tables):
        if packed[last[layer]] >> used[layer]:
            return 4, layer
    return 0, 0


@kernel
def highest_index(packed, width, count):  # type: ignore[no-untyped-def]
    """Return the highest packed index."""
    highest = _u64(0)
    for i in range(count):
        highest = max(highest, index(packed, width, i * width))
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
