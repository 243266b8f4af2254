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
"""How many levels a block has at most."""
PRECISION = 12
"""Bits of a level's frequency."""
LONG = 1 << 17
"""A block of so many levels is worth larger tables, with which more are decoded at a time."""
SPARE = 2
"""Words behind the last block that a decoder may look at."""

Counts = NDArray[np.int64]
Words = NDArray[np.uint32]
Table = NDArray[Any]
_index = np.uint64  # which is not tested for being negative


def state_bits(size: int) -> int:
    """Return the bits of a state, for a block of `size` levels.

    >>> state_bits(50_000), state_bits(2_000_000)
    (11, 13)
    """
    return 13 if size >= LONG else 11


def group(levels: int, size: int) -> int:
    """Return how many levels make a symbol: there are 256 symbols at most, or 100 in a block that is not long.

    >>> [[group(levels, size) for levels in (3, 5, 9, 15)] for size in (2_000_000, 5_000)]
    [[4, 2, 2, 2], [4, 2, 2, 1]]
    """
    most = 256 if size >= LONG else 100
    return next(per for per in (4, 2, 1) if levels**per <= most)


def frequencies(counts: Counts) -> Counts:
    """Return counts as shares of 4096, each at least 1.

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
    """Return about how many bits a block takes whose levels have these counts.

    >>> round(coded_bits(np.array([50, 900, 50]))), round(coded_bits(np.array([500_000, 500_000, 500_000])))
    (575, 2377480)
    """
    size = int(counts.sum())
    per = group(counts.size, size)
    return -(-size // per) * float(_bits_of_a_symbol(frequencies(counts), counts / size, per, state_bits(size)))


@inner
def _symbol_counts(single: Counts, per: int, size: int, shift: int) -> Counts:
    """Return how many of the `size` states each symbol has."""
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
    """Return the decoder's table, and the encoder's: states, and two numbers for each symbol (`least`, `first`).

    The decoder's has for each state the symbol (8 bits), how many bits to read (8), and what to add them to (16).
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
    """Write levels at the end of `words`; return the word at which they begin, and the bit of that word."""
    x, held, have, at = np.full(4, 1 << state), np.uint64(0), 0, words.size
    for i in range((levels.size + per - 1) // per - 1, -1, -1):
        symbol = 0
        for j in range(i * per + per - 1, i * per - 1, -1):
            symbol = symbol * count + (levels[j] if j < levels.size else count // 2)
        last = x[i & 3]
        bits = (last + least[symbol]) >> 16
        held = (held << np.uint64(bits)) | np.uint64(last & ((1 << bits) - 1))
        have += bits
        x[i & 3] = states[(last >> bits) + first[symbol]]
        if have >= 32:
            have -= 32
            at -= 1
            words[at] = np.uint32(held >> np.uint64(have))
            held &= (np.uint64(1) << np.uint64(have)) - np.uint64(1)
    for last in x[::-1]:
        held = (held << np.uint64(state)) | np.uint64(last - (1 << state))
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
def _look(octets: Table, at: Any) -> np.int64:
    """Return the bits from `at` on, by one load: 57 of them at least; four symbols take 52 at most."""
    found = np.int64(0)
    for k in range(8):
        found |= np.int64(octets[_index((at >> 3) + k)]) << (8 * k)
    return found >> (at & 7)  # type: ignore[no-any-return]


@inner
def _low(bits: Any, count: Any) -> Any:
    return bits & ((np.int64(1) << count) - 1)


@inner
def _first_states(octets: Table, at: Any, state: int) -> Any:
    held = _look(octets, at)
    return _low(held, state), _low(held >> state, state), _low(held >> 2 * state, state), _low(held >> 3 * state, state)


@inner
def _step(octets: Table, at: Any, decode: Table, x: Any) -> Any:
    """Decode a symbol: return where the next bits are, the next state, and the symbol."""
    found = np.int64(decode[_index(x)])
    bits = (found >> 8) & 255
    return at + bits, (found >> 16) + _low(_look(octets, at), bits), found & 255


@inner
def _step_four(octets: Table, at: Any, decode: Table, x0: Any, x1: Any, x2: Any, x3: Any) -> Any:
    """Decode a symbol of each state, with one load for all; return where the next bits are, states and symbols."""
    e0, e1 = np.int64(decode[_index(x0)]), np.int64(decode[_index(x1)])
    e2, e3 = np.int64(decode[_index(x2)]), np.int64(decode[_index(x3)])
    b0, b1, b2, b3 = (e0 >> 8) & 255, (e1 >> 8) & 255, (e2 >> 8) & 255, (e3 >> 8) & 255
    held, two = _look(octets, at), b0 + b1
    x0 = (e0 >> 16) + _low(held, b0)
    x1 = (e1 >> 16) + _low(held >> b0, b1)
    x2 = (e2 >> 16) + _low(held >> two, b2)
    x3 = (e3 >> 16) + _low(held >> (two + b2), b3)
    return at + (two + (b2 + b3)), x0, x1, x2, x3, e0 & 255, e1 & 255, e2 & 255, e3 & 255


@kernel
def is_sound(words: Words, end: int, at: int, size: int, count: int, per: int, state: int, decode: Table) -> bool:
    """Return whether a block of `end` words, read from bit `at` on, is what an encoder makes of `size` levels."""
    octets, limit = words.view(np.uint8), 32 * end
    if at + 4 * state > limit:
        return False
    x0, x1, x2, x3 = _first_states(octets, at, state)
    at += 4 * state
    symbols, symbol = (size + per - 1) // per, np.int64(0)
    for _ in range(symbols // 4):
        if at > limit:  # from the limit itself, a load ends with the spare words
            return False
        at, x0, x1, x2, x3, _, _, _, symbol = _step_four(octets, at, decode, x0, x1, x2, x3)
    for _ in range(symbols % 4):
        if at > limit:
            return False
        at, x, symbol = _step(octets, at, decode, x0)
        x0, x1, x2, x3 = x1, x2, x3, x
    for _ in range(size % per):
        symbol //= count
    for _ in range(-size % per):  # behind the last level are zeros
        if symbol % count != count // 2:
            return False
        symbol //= count
    return bool(at == limit and x0 == x1 == x2 == x3 == 0)


@inner
def _add(words: Words, at: int, per: int, state: int, decode: Table, values: Table, total: Table) -> None:
    octets, flat = words.view(np.uint8), values.ravel()
    x0, x1, x2, x3 = _first_states(octets, at, state)
    at += 4 * state
    t = 0
    for _ in range(total.size // (4 * per)):
        at, x0, x1, x2, x3, s0, s1, s2, s3 = _step_four(octets, at, decode, x0, x1, x2, x3)
        for k in range(per):
            total[_index(t + k)] += flat[_index(s0 * per + k)]
        for k in range(per):
            total[_index(t + per + k)] += flat[_index(s1 * per + k)]
        for k in range(per):
            total[_index(t + 2 * per + k)] += flat[_index(s2 * per + k)]
        for k in range(per):
            total[_index(t + 3 * per + k)] += flat[_index(s3 * per + k)]
        t += 4 * per
    while t < total.size:
        at, x, symbol = _step(octets, at, decode, x0)
        x0, x1, x2, x3 = x1, x2, x3, x
        for k in range(min(per, total.size - t)):
            total[t + k] += flat[symbol * per + k]
        t += per


@kernel
def add(words: Words, at: int, state: int, decode: Table, values: Table, total: Table) -> None:
    """Add a sound block's `values`, a row for each symbol, to `total`: a loop for each length of a row."""
    if values.shape[1] == 1:
        _add(words, at, 1, state, decode, values, total)
    elif values.shape[1] == 2:
        _add(words, at, 2, state, decode, values, total)
    else:
        _add(words, at, 4, state, decode, values, total)


def values_of(levels: NDArray[np.float32], per: int) -> NDArray[np.float32]:
    """Return the values of each symbol's levels, a row for each.

    >>> values_of(np.array([-1, 0, 1], np.float32), 2)[:4].tolist()
    [[-1.0, -1.0], [0.0, -1.0], [1.0, -1.0], [-1.0, 0.0]]
    """
    symbols = np.arange(levels.size**per)
    return levels[symbols[:, None] // levels.size ** np.arange(per) % levels.size]
