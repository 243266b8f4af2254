"""The codec that leaves most numbers out: those farthest from the common start, and their places."""

from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray

from pushcen.checks import check_number
from pushcen.codec.accumulator import Accumulator, Weight
from pushcen.codec.clustering import largest
from pushcen.codec.codebook import Values
from pushcen.codec.codec import Codec, Rows, check_values
from pushcen.codec.numba_kernels import Bytes
from pushcen.codec.schema import Schema
from pushcen.codec.wire import Header
from pushcen.errors import PayloadError

_WHOLE = 10_000  # the parameter of a share of 1
_LONGEST = 2**32  # numbers of a model whose places fit


@dataclass(frozen=True)
class TopK(Codec, plain_name="top-k"):
    """A `share` of all numbers, those that differ most from the common start, in float32; the rest comes later.

    Of equal differences the first counts. Places are a bit for each number of the model, or 4 bytes for each that is
    sent, whichever is less. Messages of different shares understand each other.

    >>> TopK(share=0.25) == TopK(share=0.5), TopK(share=0.25).parameter
    (True, 2500)
    >>> TopK(share=0)
    Traceback (most recent call last):
    pushcen.errors.OptionError: share = 0: must be a number from 0.0001 to 1
    """

    share: float = field(default=0.1, compare=False)

    code: ClassVar[int] = 7
    from_start: ClassVar[bool] = True
    feedback: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number("share", self.share, 1 / _WHOLE, 1)
        object.__setattr__(self, "share", self.parameter / _WHOLE)  # as the header has it

    @property
    def parameter(self) -> int:
        """Ten-thousandths of all numbers."""
        return round(self.share * _WHOLE)

    @classmethod
    def read(cls, header: Header, body: Bytes) -> Self:  # noqa: ARG003
        """Return the codec that a header names."""
        return cls(header.parameter / _WHOLE)

    def count(self, schema: Schema) -> int:
        """Return how many numbers a message has."""
        return -(-schema.size * self.parameter // _WHOLE)

    def size(self, schema: Schema) -> int:
        """Return the length of the body in bytes."""
        return 4 * self.count(schema) + min(4 * self.count(schema), -(-schema.size // 8))

    def most(self, schema: Schema) -> int:
        """Return the length of a body with all numbers."""
        return TopK(1.0).size(schema)

    def write(self, rows: Rows, schema: Schema, body: Bytes) -> None:
        """Write the numbers, and then their places."""
        if schema.size >= _LONGEST:
            raise PayloadError(f"a model of {schema.size} numbers: top-k has room for places below {_LONGEST}")
        held = []
        for entry, row in rows:
            largest(row, entry.name)  # refuses what training has spoilt
            held.append(row.cpu().numpy())
        numbers, count = np.concatenate(held), self.count(schema)
        places = _largest(np.abs(numbers), count)
        body[: 4 * count].view(np.float32)[:] = numbers[places]
        at = body[4 * count : self.size(schema)]
        if at.size == 4 * count:
            at.view(np.uint32)[:] = places
        else:
            chosen = np.zeros(schema.size, np.bool_)
            chosen[places] = True
            at[:] = np.packbits(chosen, bitorder="little")

    def check(self, schema: Schema, body: Bytes) -> None:
        """Refuse a body of the right length that no encoder makes."""
        count = self.count(schema)
        at = body[4 * count :]
        if at.size == 4 * count:
            places = at.view(np.uint32)
            if (places[1:] <= places[:-1]).any() or places[-1] >= schema.size:
                raise PayloadError("the payload's places do not ascend within the model")
        elif np.unpackbits(at).sum() != count or (schema.size % 8 and at[-1] >> schema.size % 8):
            raise PayloadError(f"the payload does not have {count} places within the model")
        check_values(self._values(schema, body))

    def add(self, schema: Schema, body: Bytes, weight: Weight, into: Accumulator) -> None:
        """Add `weight` times the numbers, each at its place."""
        places, device = torch.from_numpy(self._places(schema, body)), into.row.device
        values = torch.from_numpy(self._values(schema, body).copy())
        into.row.index_add_(0, places.to(device), values.to(device), alpha=float(weight))

    def _values(self, schema: Schema, body: Bytes) -> Values:
        return body[: 4 * self.count(schema)].view(np.float32)

    def _places(self, schema: Schema, body: Bytes) -> NDArray[np.int64]:
        count = self.count(schema)
        at = body[4 * count :]
        if at.size == 4 * count:
            return at.view(np.uint32).astype(np.int64)
        return np.flatnonzero(np.unpackbits(at, count=schema.size, bitorder="little"))


def _largest(values: Values, count: int) -> NDArray[np.intp]:
    """Return the places of the `count` largest values, ascending; of equal ones, the first."""
    least = np.partition(values, -count)[-count]
    chosen = values > least
    equal = np.flatnonzero(values == least)[: count - np.count_nonzero(chosen)]
    chosen[equal] = True
    return np.flatnonzero(chosen)
