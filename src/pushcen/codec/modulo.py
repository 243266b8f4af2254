"""The codec of Moniqua: every number modulo 1, as one of a few equal steps."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pushcen.checks import check_count
from pushcen.codec.accumulator import Accumulator, Weight
from pushcen.codec.clustering import kernels, largest
from pushcen.codec.codec import Codec, Rows
from pushcen.codec.numba_kernels import Bytes
from pushcen.codec.schema import Schema
from pushcen.codec.wire import Header
from pushcen.errors import PayloadError


@dataclass(frozen=True)
class Modulo(Codec, plain_name="modulo"):
    """The middle of one of 2 ** `bits` equal steps from -1/2 to 1/2, for each number; whole numbers are left off.

    >>> Modulo(bits=2).levels().tolist(), Modulo(bits=2).error
    ([-0.375, -0.125, 0.125, 0.375], 0.125)
    >>> Modulo(bits=9)
    Traceback (most recent call last):
    pushcen.errors.OptionError: bits = 9: must be a whole number from 1 to 8
    """

    bits: int = 8

    code: ClassVar[int] = 8

    def __post_init__(self) -> None:
        check_count("bits", self.bits, 1, 8)

    @property
    def parameter(self) -> int:
        """Bits of a number."""
        return self.bits

    @property
    def error(self) -> float:
        """The most that rounding moves a number: half a step."""
        return 0.5 ** (self.bits + 1)

    @property
    def whole(self) -> bool:
        """Whether a message holds all of each number: no."""
        return False

    @classmethod
    def read(cls, header: Header, body: Bytes) -> Self:  # noqa: ARG003
        """Return the codec that a header names."""
        return cls(header.parameter)

    def levels(self) -> NDArray[np.float32]:
        """Return what each index stands for."""
        return ((np.arange(1 << self.bits) + 0.5) / (1 << self.bits) - 0.5).astype(np.float32)

    def size(self, schema: Schema) -> int:
        """Return the length of the body in bytes."""
        return -(-schema.size * self.bits // 8)

    def write(self, rows: Rows, schema: Schema, body: Bytes) -> None:
        """Encode the rows into `body`."""
        indices = np.empty(schema.size, np.uint8)
        at, steps = 0, 1 << self.bits
        for entry, row in rows:
            largest(row, entry.name)
            values = row.cpu().numpy().astype(np.float64)
            place = np.floor((values - np.floor(values + 0.5) + 0.5) * steps)
            indices[at : at + entry.size] = np.minimum(place, steps - 1)  # the last step ends at 1/2
            at += entry.size
        packed = np.unpackbits(indices[:, None], axis=1, count=self.bits, bitorder="little")
        body[: self.size(schema)] = np.packbits(packed, bitorder="little")

    def check(self, schema: Schema, body: Bytes) -> None:
        """Refuse a body that does not end in zero bits."""
        used = schema.size * self.bits % 8
        if used and body[-1] >> used:
            raise PayloadError("the indices do not end in zero bits")

    def add(self, schema: Schema, body: Bytes, weight: Weight, into: Accumulator) -> None:
        """Add `weight` times what the indices stand for."""
        table, span = self.levels()[None] * np.float32(weight), np.array([[0, schema.size]])
        kernels(into.row).add_packed(body, self.bits, table, span, into.row)
