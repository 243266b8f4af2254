"""Another codec's message with a mass in front: for methods that count push-sum's mass themselves, as a number."""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from pushcen.codec.accumulator import Accumulator, Weight
from pushcen.codec.bins import LIMIT
from pushcen.codec.centroids import Centroids
from pushcen.codec.codec import Codec, Rows
from pushcen.codec.dense import Dense
from pushcen.codec.lean import Lean
from pushcen.codec.numba_kernels import Bytes
from pushcen.codec.schema import Schema
from pushcen.codec.wire import Header
from pushcen.errors import OptionError, PayloadError

_FRONT = 8  # bytes of the mass
_INNER: dict[int, type[Codec]] = {1: Centroids, 2: Dense, 3: Dense, 5: Lean}


@dataclass(frozen=True)
class WithMass(Codec, plain_name="with-mass"):
    """What `inner` writes, and the `mass` that goes with it, in float64; what it means is the method's business.

    The parameter is the inner codec's number, times 4,096, and its parameter.

    >>> WithMass(Centroids(clusters=32)).parameter == 1 << 12 | 32
    True
    """

    inner: Codec = Dense()  # noqa: RUF009 (it is frozen)
    mass: float = field(default=0.0, compare=False)

    code: ClassVar[int] = 6

    def __post_init__(self) -> None:
        if _INNER.get(self.inner.code) is not type(self.inner):
            raise OptionError(
                f"codec = {self.inner.name!r}: must be one of dense, centroids, lean where mass goes with it"
            )

    @property
    def parameter(self) -> int:
        """What the inner codec is."""
        return self.inner.code << 12 | self.inner.parameter

    @classmethod
    def read(cls, header: Header, body: Bytes) -> Self:
        """Return the codec that a header names, with the mass in the body."""
        kind = _INNER.get(header.parameter >> 12)
        if kind is None or body.size < _FRONT:
            raise PayloadError(f"a payload with mass has parameter {header.parameter} and {body.size} bytes")
        code, parameter = header.parameter >> 12, header.parameter & 0xFFF
        inner = kind.read(replace(header, codec=code, parameter=parameter), body[_FRONT:])
        return cls(inner, float(body[:_FRONT].view(np.float64)[0]))

    def size(self, schema: Schema) -> int:
        """Return the length of the body in bytes."""
        return _FRONT + self.inner.size(schema)

    def write(self, rows: Rows, schema: Schema, body: Bytes) -> None:
        """Write the mass, and the rows behind it."""
        body[:_FRONT].view(np.float64)[0] = self.mass
        self.inner.write(rows, schema, body[_FRONT:])

    def check(self, schema: Schema, body: Bytes) -> None:
        """Refuse a mass that is negative, not finite or absurd, and what the inner codec refuses."""
        if not 0 <= body[:_FRONT].view(np.float64)[0] <= LIMIT:
            raise PayloadError("the payload has a mass that is negative, not finite, or larger than 2**60")
        self.inner.check(schema, body[_FRONT:])

    def add(self, schema: Schema, body: Bytes, weight: Weight, into: Accumulator) -> None:
        """Add `weight` times the inner codec's numbers; the mass is no part of them."""
        self.inner.add(schema, body[_FRONT:], weight, into)
