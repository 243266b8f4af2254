"""How the body of a lean message is laid out: numbers in 8 bits, then blocks of entropy-coded levels.

`docs/wire-format.md` says what each byte is.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pushcen.codec import entropy
from pushcen.codec.bins import LIMIT
from pushcen.codec.jit import read_only
from pushcen.codec.numba_kernels import Bytes
from pushcen.codec.rates import Choice, Histogram, assign
from pushcen.codec.schema import Schema
from pushcen.errors import PayloadError

LARGE = 4096
"""A clustered tensor of so many numbers is a block of its own; all smaller ones are one block together."""
FIXED = 8 + 4 + 8
"""Bytes of a block beside its levels: its beginning, what fills up its table, its states."""
LEVEL = 24 + 8
"""About how many bits a table takes for each level."""
END = 4 * entropy.SPARE
"""Bytes of zeros at the end of a body."""

Places = tuple[tuple[int, slice], ...]


@dataclass(frozen=True)
class Layout:
    """Which entries of a schema are sent in 8 bits, and which in blocks: each by its number and place in the row."""

    plain: Places
    blocks: tuple[Places, ...]

    @classmethod
    def of(cls, schema: Schema) -> "Layout":
        """Return the layout of a schema; it is made once."""
        return _layout(schema)

    @property
    def plain_size(self) -> int:
        """How many numbers are sent in 8 bits."""
        return sum(place.stop - place.start for _, place in self.plain)

    @property
    def begin(self) -> int:
        """The byte of a body at which the blocks begin."""
        return 4 * len(self.plain) + -(-self.plain_size // 4) * 4

    @property
    def least(self) -> int:
        """The bytes of a body whose blocks are all zeros: the shortest there is."""
        return self.begin + 8 * len(self.blocks) + END

    def write_plain(self, rows: list[NDArray[np.float32]], largest: list[float], body: Bytes) -> None:
        """Write the numbers in 8 bits: a scale for each tensor, and whole numbers from -127 to 127."""
        scales, numbers = self._sections(body)
        numbers[self.plain_size :] = 0
        at = 0
        for number, (entry, _) in enumerate(self.plain):
            scales[number] = scale = np.float32(largest[entry] / 127)
            end = at + rows[entry].size
            numbers[at:end] = np.clip(np.rint(rows[entry] / (scale or np.float32(1))), -127, 127)
            at = end

    def check_plain(self, body: Bytes) -> None:
        """Refuse scales that are negative or too large, and numbers that no encoder writes."""
        scales, numbers = self._sections(body)
        if not ((scales >= 0) & (scales <= np.float32(LIMIT / 127))).all():
            raise PayloadError("the payload has a scale that is negative, not finite, or too large")
        if (numbers == -128).any() or numbers[self.plain_size :].any():
            raise PayloadError("the payload has a number below -127, or something between its numbers and its blocks")

    def add_plain(self, body: Bytes, weight: np.float32, total: NDArray[np.float32]) -> None:
        """Add `weight` times the numbers in 8 bits to `total`."""
        scales, numbers = self._sections(body)
        at = 0
        for scale, (_, place) in zip(scales, self.plain, strict=True):
            end = at + place.stop - place.start
            total[place] += numbers[at:end] * (scale * weight)
            at = end

    def read(self, body: Bytes) -> "tuple[list[Block], int]":
        """Return the blocks of a body, and the byte where they end; refuse what does not fit into it."""
        found, at = [], self.begin
        for _ in self.blocks:
            block, at = Block.read(body, at)
            found.append(block)
        return found, at

    def _sections(self, body: Bytes) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
        scales = 4 * len(self.plain)
        return body[:scales].view(np.float32), body[scales : self.begin].view(np.int8)


@lru_cache(maxsize=64)
def _layout(schema: Schema) -> Layout:
    places = [(at, entry, place) for at, (entry, place) in enumerate(schema.slices) if entry.size]
    plain = tuple((at, place) for at, entry, place in places if not entry.clustered)
    clustered = [(at, place) for at, entry, place in places if entry.clustered]
    small = tuple((at, place) for at, place in clustered if place.stop - place.start < LARGE)
    large: list[Places] = [((at, place),) for at, place in clustered if place.stop - place.start >= LARGE]
    return Layout(plain, tuple(([small] if small else []) + large))


@dataclass(frozen=True, eq=False)
class Block:
    """A block as it is found in a body: nothing in it is trusted before `check`."""

    values: NDArray[np.float32]
    """The magnitude of each level above zero."""
    frequencies: NDArray[np.uint16]
    first: int
    """The bit of its first word at which reading begins."""
    words: NDArray[np.uint32]
    """Its words, and behind them those that a decoder may look at."""
    length: int
    """How many of the words are its own."""

    @classmethod
    def read(cls, body: Bytes, at: int) -> "tuple[Block, int]":
        """Return the block at byte `at`, and the byte where it ends; refuse one that does not fit into the body."""
        room = body.size - END
        if at + 8 <= room:
            above, first, nothing = int(body[at]), int(body[at + 1]), body[at + 2 : at + 4].any()
            length = int(body[at + 4 : at + 8].view(np.uint32)[0])
            count = 2 * above + 1 if above else 0
            table = at + 8 + 4 * above
            begin = table + -(-2 * count // 4) * 4
            end = begin + 4 * length
            if not nothing and count <= entropy.LEVELS and first < 32 and end <= room:
                frequencies = body[table:begin].view(np.uint16)
                if not frequencies[count:].any():
                    words = body[begin : end + END].view(np.uint32)
                    return cls(body[at + 8 : table].view(np.float32), frequencies[:count], first, words, length), end
        raise PayloadError("the payload has a block that is cut off, or whose beginning no encoder writes")

    def check(self, size: int) -> None:
        """Refuse a block that an encoder cannot have made of `size` levels."""
        if not self.values.size:
            sound = self.first == self.length == 0
        else:
            grows = self.values[0] > 0 and (np.diff(self.values) > 0).all()
            full = self.frequencies.all() and self.frequencies.sum(dtype=np.int64) == 1 << entropy.PRECISION
            sound = bool(grows and full) and self._follows(size)
        if not sound:
            raise PayloadError("the payload has a block that no encoder makes: its levels, or how they are coded")

    def _follows(self, size: int) -> bool:
        count, per, state, decode = _decoding(self.frequencies.tobytes(), size >= entropy.LONG)
        return bool(entropy.is_sound(read_only(self.words), self.length, self.first, size, count, per, state, decode))

    def add(self, weight: np.float32, rows: list[NDArray[np.float32]]) -> None:
        """Add `weight` times the values of a sound block to the rows, one after the other."""
        if not self.values.size:
            return
        scaled, size = self.values * weight, sum(row.size for row in rows)
        _, per, state, decode = _decoding(self.frequencies.tobytes(), size >= entropy.LONG)
        values = entropy.values_of(np.concatenate([-scaled[::-1], [np.float32(0)], scaled]), per)
        alone = rows[0] if len(rows) == 1 else np.zeros(size, np.float32)
        entropy.add(read_only(self.words), self.first, state, decode, values, alone)
        if len(rows) > 1:
            begin = 0
            for row in rows:
                row += alone[begin : begin + row.size]
                begin += row.size


@lru_cache(maxsize=64)
def _decoding(frequencies: bytes, long: bool) -> tuple[int, int, int, NDArray[np.uint32]]:
    """Return how many levels there are, how many make a symbol, the bits of a state, and the decoder's table.

    It is cached, since a message that was checked is soon added.
    """
    single = np.frombuffer(frequencies, np.uint16).astype(np.int64)
    size = entropy.LONG if long else 0
    per, state = entropy.group(single.size, size), entropy.state_bits(size)
    return single.size, per, state, entropy.tables(single, per, state)[0]


def write(rows: list[NDArray[np.float32]], histogram: Histogram, choice: Choice, body: Bytes) -> int:
    """Write a block into `body` if it fits; return how many bytes it takes, whether or not it was written."""
    above, count = choice.values.size, choice.counts.size
    if not above:
        body[:8] = 0
        return 8
    levels = np.empty(sum(row.size for row in rows), np.uint8)
    per, state = entropy.group(count, levels.size), entropy.state_bits(levels.size)
    frequencies = entropy.frequencies(choice.counts)
    _, states, least, first = entropy.tables(frequencies, per, state)
    lookup, begin = choice.lookup(), 0
    for row in rows:
        assign(read_only(row.view(np.int32)), histogram.base, lookup, above, levels[begin : begin + row.size])
        begin += row.size
    words = np.empty(entropy.most_words(levels.size, count), np.uint32)
    at, bit = entropy.encode(levels, count, per, state, states, least, first, words)
    coded = words[at:]
    table = 8 + 4 * above
    begin = table + -(-2 * count // 4) * 4
    size = begin + 4 * coded.size
    if size <= body.size:
        body[:4] = above, bit, 0, 0
        body[4:8].view(np.uint32)[0] = coded.size
        body[8:table].view(np.float32)[:] = choice.values
        body[table:begin] = 0
        body[table : table + 2 * count].view(np.uint16)[:] = frequencies
        body[begin:size].view(np.uint32)[:] = coded
    return size
