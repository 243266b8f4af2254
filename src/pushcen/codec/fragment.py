"""The codec of DivShare: the numbers of one part of the model, cut by a seed that all clients share."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from pushcen.codec import cpu
from pushcen.codec.accumulator import Accumulator, Weight
from pushcen.codec.bins import LIMIT
from pushcen.codec.cells import Values
from pushcen.codec.clustering import largest
from pushcen.codec.cpu import Bytes
from pushcen.codec.cut import Cut
from pushcen.codec.reference import Reference
from pushcen.codec.schema import Entry, Schema
from pushcen.errors import OptionError, PayloadError

_FIELDS = struct.Struct("<QHH4x")  # seed, parts, part


@dataclass(frozen=True)
class Fragment:
    """Part number `part` of a model cut by `cut`, in float32.

    >>> Fragment(part=5, cut=Cut(parts=5))
    Traceback (most recent call last):
    pushcen.errors.OptionError: part = 5: must be a whole number from 0 to 4
    """

    part: int
    cut: Cut

    code: ClassVar[int] = 4

    def __post_init__(self) -> None:
        self.cut.check_part(self.part)

    def size(self, schema: Schema) -> int:
        """Return the length of the body in bytes."""
        return _FIELDS.size + 4 * self.cut.size(self.part, schema.size)

    def write(self, rows: Iterable[tuple[Entry, torch.Tensor]], schema: Schema, body: Bytes) -> None:
        """Encode the rows into `body`."""
        _FIELDS.pack_into(body.data, 0, self.cut.seed, self.cut.parts, self.part)
        values = body[_FIELDS.size : self.size(schema)].view(np.float32)
        begin = at = 0
        for entry, row in rows:
            largest(row, entry.name)
            here = self.cut.places(self.part, begin, begin + entry.size) - begin
            values[at : at + here.size] = row.cpu().numpy()[here]
            at += here.size
            begin += entry.size

    @classmethod
    def read(cls, body: Bytes) -> "Fragment":
        """Return the codec that a body names."""
        if body.size < _FIELDS.size:
            raise PayloadError(
                f"a fragment of {body.size} bytes is cut off: it says which part it is in {_FIELDS.size}"
            )
        seed, parts, part = _FIELDS.unpack_from(body.data)
        try:
            return cls(part, Cut(parts, seed))
        except OptionError as error:
            raise PayloadError(f"the payload is no fragment: {error}") from None

    def check(self, schema: Schema, body: Bytes) -> None:  # noqa: ARG002
        """Refuse a body of the right length that no encoder makes."""
        if body[12 : _FIELDS.size].any():
            raise PayloadError("the payload's four spare bytes are not zero")
        if cpu.largest_value(self._values(body)) > LIMIT:
            raise PayloadError("the payload has a value that is not finite, or larger than 2**60")

    def add(self, schema: Schema, body: Bytes, weight: Weight, into: Accumulator, reference: Reference | None) -> None:  # noqa: ARG002
        """Add `weight` times the part's values to their places, and the weight to this part's."""
        if into.cut not in (None, self.cut):
            raise PayloadError(f"this fragment is cut by {self.cut}, and those accumulated so far by {into.cut}")
        values = self._values(body)
        if reference is not None:
            places = self.cut.places(self.part, 0, into.schema.size)
            values = values + reference.row.cpu().numpy()[places]
        self.cut.scatter_add(values, self.part, into.total, weight)
        into.cut = self.cut
        into.extra = into.extra or [0] * self.cut.parts
        into.extra[self.part] += weight

    def _values(self, body: Bytes) -> Values:
        return body[_FIELDS.size :].view(np.float32)
