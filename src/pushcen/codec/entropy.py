"""Levels as bits, near their entropy: table-driven asymmetric numeral systems (tANS; Duda, arXiv:1311.2540), in numba.

A block is a row of levels, 0 to L - 1. A symbol is a group of levels, so that one costs much less than a bit; its
frequency is the product of its levels', in whole numbers, so that both sides have the same tables. Four states take
turns, so that four symbols are decoded at a time. The encoder goes from the last symbol to the first.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pushcen.codec.jit import inner, kernel

LEVELS = 15
"""At most so many."""
PRECISION = 12
"""Bits of a level's frequency."""
LONG = 1 << 17
"""Levels of a block that is worth large tables, with which more are decoded at a time."""
SPARE = 2
"""Words behind the last block that a decoder may look at."""

Counts = NDArray[np.int64]
Words = NDArray[np.uint32]
Table = NDArray[Any]


def state_bits(size: int) -> int:
    """Return the bits of a state, for a block of `size` levels.

    >>> state_bits(50_000), state_bits(2_000_000)
    (11, 13)
    """
    return 13 if size >= LONG else 11


def group(levels: int, size: int) -> int:
    """Return how many levels a symbol has: there are 256 symbols at most, or 100 in a block that is not long.

    >>> [[group(levels, size) for levels in (3, 5, 9, 15)] for size in (2_000_000, 5_000)]
    [[4, 2, 2, 2], [4, 2, 2, 1]]
    """
    most = 256 if size >= LONG else 100
    return next(per for per in (4, 2, 1) if levels**per <= most)


def frequencies(counts: Counts) -> Counts:
    """Return counts as shares of 4096, none of them nothing.

    >>> frequencies(np.array([1, 98, 1])).tolist()
    [41, 4014, 41]
    """
    total = 1 << PRECISION
    found = np.maximum(1, np.rint(counts * (total / max(int(counts.sum()), 1)))).astype(np.int64)
    found[found.argmax()] += total - found.sum()
    return np.asarray(found, np.int64)


def most_words(size: int, levels: int) -> int:
    """Return how many words a block can take at most: no symbol takes more bits than a state has."""
    return -(-(-(-size // group(levels, size)) + 4) * state_bits(size) // 32) + 1


def coded_bits(counts: Counts) -> float:
    """Return how many bits a block whose levels are so frequent takes, about.

    >>> round(coded_bits(np.array([50, 900, 50]))), round(coded_bits(np.array([500_000, 500_000, 500_000])))
    (575, 2377480)
    """
    size = int(counts.sum())
    per = group(counts.size, size)
    return -(-size // per) * float(_bits_of_a_symbol(frequencies(counts), counts / size, per, state_bits(size)))


@inner
def _symbol_counts(single: Counts, per: int, size: int, shift: int) -> Counts:
    """Return how many of all states each symbol has."""
    symbols = single.size**per
    counts = np.empty(symbols, np.int64)
    over = -size
    for symbol in range(symbols):
        product, rest = np.int64(1), symbol
        for _ in range(per):
            product *= single[rest % single.size]
            rest //= single.size
        counts[symbol] = max(1, product >> shift)
        over += counts[symbol]
    if over < 0:
        counts[counts.argmax()] -= over
    whole = over
    while over > 0:  # too many were raised to 1: all others give, each its share
        for symbol in range(symbols):
            less = min(over, counts[symbol] - 1, max(1, counts[symbol] * whole // size))
            counts[symbol] -= less
            over -= less
    return counts


@kernel
def _bits_of_a_symbol(single: Counts, shares: NDArray[np.float64], per: int, state: int) -> float:
    counts = _symbol_counts(single, per, 1 << state, PRECISION * per - state)
    bits = 0.0
    for symbol in range(counts.size):
        share, rest = 1.0, symbol
        for _ in range(per):
            share *= shares[rest % single.size]
            rest //= single.size
        bits += share * (state - math.log2(counts[symbol]))
    return bits


@kernel
def tables(single: Counts, per: int, state: int) -> tuple[Table, Table, Table, Table]:
    """Return what decoding a state looks up, and what encoding does: states, and two numbers for each symbol.

    What is looked up for a state: the symbol (8 bits), how many bits to read (8), what to add them to (16).
    """
    size = 1 << state
    counts = _symbol_counts(single, per, size, PRECISION * per - state)
    symbols = counts.size
    spread = np.empty(size, np.int64)
    at, stride = 0, (size >> 1) + (size >> 3) + 3
    for symbol in range(symbols):
        for _ in range(counts[symbol]):
            spread[at] = symbol
            at = (at + stride) & (size - 1)
    begins = np.cumsum(counts) - counts
    met = counts.copy()
    decode = np.empty(size, np.uint32)
    states = np.empty(size, np.int32)
    for x in range(size):
        symbol = spread[x]
        n = met[symbol]
        met[symbol] += 1
        states[begins[symbol] + n - counts[symbol]] = size + x
        bits = 0
        while n << bits < size:
            bits += 1
        decode[x] = symbol | bits << 8 | ((n << bits) - size) << 16
    least = np.empty(symbols, np.int32)  # a state gives (state + least) >> 16 bits
    first = np.empty(symbols, np.int32)  # and states[(state >> bits) + first] is the next
    for symbol in range(symbols):
        n = counts[symbol]
        bits = 0
        while n << bits < size:
            bits += 1
        least[symbol] = (bits << 16) - (n << bits)
        first[symbol] = begins[symbol] - n
    return decode, states, least, first


@kernel
def encode(levels: NDArray[np.uint8], count: int, per: int, state: int, states: Table, least: Table, first: Table,
           words: Words) -> tuple[int, int]:  # fmt: skip
    """Write levels at the end of `words`; return at which word they begin, and at which of its bits."""
    x0 = x1 = x2 = x3 = np.int64(1 << state)
    held, have, at = np.uint64(0), 0, words.size
    groups = (levels.size + per - 1) // per
    for i in range(groups - 1, -1, -1):
        symbol = 0
        for j in range(i * per + per - 1, i * per - 1, -1):
            symbol = symbol * count + (levels[j] if j < levels.size else count // 2)
        turn = i & 3
        x = x0 if turn == 0 else x1 if turn == 1 else x2 if turn == 2 else x3
        bits = (x + least[symbol]) >> 16
        held = (held << np.uint64(bits)) | np.uint64(x & ((1 << bits) - 1))
        have += bits
        x = np.int64(states[(x >> bits) + first[symbol]])
        if turn == 0:
            x0 = x
        elif turn == 1:
            x1 = x
        elif turn == 2:
            x2 = x
        else:
            x3 = x
        if have >= 32:
            have -= 32
            at -= 1
            words[at] = np.uint32(held >> np.uint64(have))
            held &= (np.uint64(1) << np.uint64(have)) - np.uint64(1)
    for x in (x3, x2, x1, x0):
        held = (held << np.uint64(state)) | np.uint64(x - (1 << state))
        have += state
        if have >= 32:
            have -= 32
            at -= 1
            words[at] = np.uint32(held >> np.uint64(have))
            held &= (np.uint64(1) << np.uint64(have)) - np.uint64(1)
    if have:
        at -= 1
        words[at] = np.uint32(held << np.uint64(32 - have))
    return at, (32 - have) % 32


@inner
def _look(words: Words, at: int) -> np.uint64:
    word = at >> 5
    return (np.uint64(words[word]) | np.uint64(words[word + 1]) << np.uint64(32)) >> np.uint64(at & 31)


@inner
def _low(bits: np.uint64, count: Any) -> np.int64:
    return np.int64(bits & ((np.uint64(1) << np.uint64(count)) - np.uint64(1)))


@kernel
def is_sound(words: Words, end: int, at: int, size: int, count: int, per: int, state: int, decode: Table) -> bool:
    """Say whether a block of `end` words, read from bit `at` on, is what an encoder makes of `size` levels."""
    if at + 4 * state > 32 * end:  # so nothing behind the words is read
        return False
    x = np.empty(4, np.int64)
    for turn in range(4):
        x[turn] = _low(_look(words, at), state)
        at += state
    limit, symbol = 32 * end, 0
    for i in range((size + per - 1) // per):
        if at > limit:
            return False
        found: Any = np.int64(decode[x[i & 3]])
        bits = (found >> 8) & 255
        x[i & 3] = (found >> 16) + _low(_look(words, at), bits)
        at += bits
        symbol = found & 255
    for _ in range(size % per):
        symbol //= count
    for _ in range(-size % per):  # behind the last level are zeros
        if symbol % count != count // 2:
            return False
        symbol //= count
    return at == limit and x[0] == x[1] == x[2] == x[3] == 0


@inner
def _add(words: Words, at: int, per: int, state: int, decode: Table, values: Table, total: Table) -> None:
    x0 = _low(_look(words, at), state)
    x1 = _low(_look(words, at + state), state)
    x2 = _low(_look(words, at + 2 * state), state)
    x3 = _low(_look(words, at + 3 * state), state)
    at += 4 * state
    t = 0
    for _ in range(total.size // (4 * per)):
        e0, e1, e2, e3 = decode[x0], decode[x1], decode[x2], decode[x3]
        b0, b1, b2, b3 = (e0 >> 8) & 255, (e1 >> 8) & 255, (e2 >> 8) & 255, (e3 >> 8) & 255
        held = _look(words, at)
        x0 = np.int64(e0 >> 16) + _low(held, b0)
        x1 = np.int64(e1 >> 16) + _low(held >> np.uint64(b0), b1)
        at += b0 + b1
        held = _look(words, at)
        x2 = np.int64(e2 >> 16) + _low(held, b2)
        x3 = np.int64(e3 >> 16) + _low(held >> np.uint64(b2), b3)
        at += b2 + b3
        s0, s1, s2, s3 = e0 & 255, e1 & 255, e2 & 255, e3 & 255
        for k in range(per):
            total[t + k] += values[s0, k]
            total[t + per + k] += values[s1, k]
            total[t + 2 * per + k] += values[s2, k]
            total[t + 3 * per + k] += values[s3, k]
        t += 4 * per
    while t < total.size:
        found = decode[x0]
        bits = (found >> 8) & 255
        x = np.int64(found >> 16) + _low(_look(words, at), bits)
        at += bits
        for k in range(per):
            if t + k < total.size:
                total[t + k] += values[found & 255, k]
        x0, x1, x2, x3 = x1, x2, x3, x
        t += per


@kernel
def _add_1(words: Words, at: int, state: int, decode: Table, values: Table, total: Table) -> None:
    _add(words, at, 1, state, decode, values, total)


@kernel
def _add_2(words: Words, at: int, state: int, decode: Table, values: Table, total: Table) -> None:
    _add(words, at, 2, state, decode, values, total)


@kernel
def _add_4(words: Words, at: int, state: int, decode: Table, values: Table, total: Table) -> None:
    _add(words, at, 4, state, decode, values, total)


ADD = {1: _add_1, 2: _add_2, 4: _add_4}
"""By levels in a symbol: add a sound block's `values`, a row for each symbol, to `total`."""


def values_of(levels: NDArray[np.float32], per: int) -> NDArray[np.float32]:
    """Return the values of each symbol's levels, a row for each.

    >>> values_of(np.array([-1, 0, 1], np.float32), 2)[:4].tolist()
    [[-1.0, -1.0], [0.0, -1.0], [1.0, -1.0], [-1.0, 0.0]]
    """
    symbols = np.arange(levels.size**per)
    return levels[symbols[:, None] // levels.size ** np.arange(per) % levels.size]
