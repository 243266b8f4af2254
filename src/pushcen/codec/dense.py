"""The codec of the dense methods: every number as it is, in float32 or float16."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Self, get_args

import numpy as np

from pushcen.checks import check_choice
from pushcen.codec.accumulator import Accumulator, Weight
from pushcen.codec.clustering import kernels, largest
from pushcen.codec.codebook import Values
from pushcen.codec.codec import Codec, Rows, check_values
from pushcen.codec.numba_kernels import Bytes
from pushcen.codec.schema import Schema
from pushcen.codec.wire import Header
from pushcen.errors import ModelError

Number = Literal["float32", "float16"]
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Dense(Codec, plain_name="dense"):
    """Every shared number, in the order of the schema.

    >>> Dense("int8")
    Traceback (most recent call last):
    pushcen.errors.OptionError: number = 'int8': must be one of float32, float16
    """

    number: Number = "float32"

    def __post_init__(self) -> None:
        check_choice("number", self.number, get_args(Number))

    @property
    def code(self) -> int:
        """The codec's number on the wire."""
        return 2 if self.number == "float32" else 3

    @classmethod
    def read(cls, header: Header, body: Bytes) -> Self:  # noqa: ARG003
        """Return the codec that a header names."""
        return cls("float32" if header.codec == 2 else "float16")

    def size(self, schema: Schema) -> int:
        """Return the length of the body in bytes."""
        return schema.size * np.dtype(self.number).itemsize

    def write(self, rows: Rows, schema: Schema, body: Bytes) -> None:
        """Encode the rows into `body`."""
        values = body[: self.size(schema)].view(self.number)
        at = 0
        for entry, row in rows:
            most = largest(row, entry.name)
            if self.number == "float16" and most >= 65520:
                raise ModelError(f"{entry.name} has a value of {most:.6g}, too large for float16; use Dense('float32')")
            values[at : at + entry.size] = row.cpu().numpy()
            at += entry.size

    def check(self, schema: Schema, body: Bytes) -> None:  # noqa: ARG002
        """Refuse a body of the right length that no encoder makes."""
        for _, chunk in self._chunks(body):
            check_values(chunk)

    def add(self, schema: Schema, body: Bytes, weight: Weight, into: Accumulator) -> None:  # noqa: ARG002
        """Add `weight` times the model."""
        for begin, chunk in self._chunks(body):
            kernels(into.row).add_values(chunk, weight, np.array([[begin, begin + chunk.size]]), into.row)

    def _chunks(self, body: Bytes) -> Iterator[tuple[int, Values]]:
        values = body.view(self.number)
        for begin in range(0, values.size, _CHUNK):
            yield begin, values[begin : begin + _CHUNK].astype(np.float32, copy=False)
