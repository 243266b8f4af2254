"""The codec of the dense methods: every number as it is, in float32 or float16."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch

from pushcen.codec import cpu
from pushcen.codec.accumulator import Accumulator, Weight
from pushcen.codec.bins import LIMIT
from pushcen.codec.cells import Values
from pushcen.codec.clustering import kernels, largest
from pushcen.codec.cpu import Bytes
from pushcen.codec.reference import Reference
from pushcen.codec.schema import Entry, Schema
from pushcen.errors import ModelError, OptionError, PayloadError

Number = Literal["float32", "float16"]
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Dense:
    """Every shared number, in the order of the schema.

    >>> Dense("int8")
    Traceback (most recent call last):
    pushcen.errors.OptionError: number = 'int8': must be one of float32, float16
    """

    number: Number = "float32"

    def __post_init__(self) -> None:
        if self.number not in get_args(Number):
            raise OptionError(f"number = {self.number!r}: must be one of {', '.join(get_args(Number))}")

    @property
    def code(self) -> int:
        """The codec's number on the wire."""
        return 2 if self.number == "float32" else 3

    def size(self, schema: Schema) -> int:
        """Return the length of the body in bytes."""
        return schema.size * np.dtype(self.number).itemsize

    def write(self, rows: Iterable[tuple[Entry, torch.Tensor]], schema: Schema, body: Bytes) -> None:
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
        if any(cpu.largest_value(chunk) > LIMIT for _, chunk in self._chunks(body)):
            raise PayloadError("the payload has a value that is not finite, or larger than 2**60")

    def add(self, schema: Schema, body: Bytes, weight: Weight, into: Accumulator, reference: Reference | None) -> None:  # noqa: ARG002
        """Add `weight` times the model."""
        for begin, chunk in self._chunks(body):
            kernels(into.total).add_values(chunk, weight, np.array([[begin, begin + chunk.size]]), into.total)
        if reference is not None:
            into.total.add_(reference.row.to(into.total.device), alpha=float(weight))
        into.weight += weight

    def _chunks(self, body: Bytes) -> Iterator[tuple[int, Values]]:
        values = body.view(self.number)
        for begin in range(0, values.size, _CHUNK):
            yield begin, values[begin : begin + _CHUNK].astype(np.float32, copy=False)
