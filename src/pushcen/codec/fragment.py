"""The codec of DivShare: the numbers of one part of the model, cut by a seed that all clients share."""

import struct
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from pushcen.codec.accumulator import Accumulator, Weight
from pushcen.codec.clustering import largest
from pushcen.codec.codebook import Values
from pushcen.codec.codec import Codec, Rows, check_values
from pushcen.codec.cut import Cut
from pushcen.codec.numba_kernels import Bytes
from pushcen.codec.reference import Reference
from pushcen.codec.schema import Schema
from pushcen.codec.wire import Header
from pushcen.errors import PayloadError

_FIELDS = struct.Struct("<QHH4x")  # seed, parts, part


@dataclass(frozen=True)
class Fragment(Codec, plain_name="fragment"):
    """Part number `part` of a model cut by `cut`, in float32.

    >>> Fragment(part=5, cut=Cut(parts=5))
    Traceback (most recent call last):
    pushcen.errors.OptionError: part = 5: must be a whole number from 0 to 4
    """

    part: int
    cut: Cut

    code: ClassVar[int] = 4
    whole: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self.cut.check_part(self.part)

    def size(self, schema: Schema) -> int:
        """Return the length of the body in bytes."""
        return _FIELDS.size + 4 * self.cut.size(self.part, schema.size)

    def write(self, rows: Rows, schema: Schema, body: Bytes) -> None:
        """Encode the rows into `body`."""
        _FIELDS.pack_into(body.data, 0, self.cut.cut_seed, self.cut.parts, self.part)
        values = body[_FIELDS.size : self.size(schema)].view(np.float32)
        begin = at = 0
        for entry, row in rows:
            largest(row, entry.name)
            here = self.cut.places(self.part, begin, begin + entry.size) - begin
            values[at : at + here.size] = row.cpu().numpy()[here]
            at += here.size
            begin += entry.size

    @classmethod
    def read(cls, header: Header, body: Bytes) -> Self:  # noqa: ARG003
        """Return the codec that a body names."""
        if body.size < _FIELDS.size:
            raise PayloadError(
                f"a fragment of {body.size} bytes is cut off: it says which part it is in {_FIELDS.size}"
            )
        seed, parts, part = _FIELDS.unpack_from(body.data)
        return cls(part, Cut(parts, seed))

    def check(self, schema: Schema, body: Bytes) -> None:  # noqa: ARG002
        """Refuse a body of the right length that no encoder makes."""
        if body[12 : _FIELDS.size].any():
            raise PayloadError("the payload's four spare bytes are not zero")
        check_values(self._values(body))

    def add(self, schema: Schema, body: Bytes, weight: Weight, into: Accumulator) -> None:  # noqa: ARG002
        """Add `weight` times the part's values to their places."""
        if into.cut not in (None, self.cut):
            raise PayloadError(f"this fragment is cut by {self.cut}, and those accumulated so far by {into.cut}")
        self.cut.scatter_add(self._values(body), self.part, into.row, weight)

    def cover(self, weight: Weight, into: Accumulator, reference: Reference | None) -> None:
        """Add the reference where this part has values, and the weight to this part's."""
        if reference is not None:
            places = self.cut.places(self.part, 0, into.schema.size)
            self.cut.scatter_add(reference.row.cpu().numpy()[places], self.part, into.row, weight)
        into.cut = self.cut
        into.extra = into.extra or [0] * self.cut.parts
        into.extra[self.part] += weight

    def _values(self, body: Bytes) -> Values:
        return body[_FIELDS.size :].view(np.float32)
