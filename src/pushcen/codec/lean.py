"""The codec of few bits: levels as far apart as a budget asks for, entropy-coded; what they leave out comes later.

It is made for differences to a model that both sides have, most of which are next to nothing.
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np

from pushcen.checks import check_number
from pushcen.codec import blocks
from pushcen.codec.accumulator import Accumulator, Weight
from pushcen.codec.blocks import Layout
from pushcen.codec.clustering import largest
from pushcen.codec.codec import Codec, Rows, check_values
from pushcen.codec.numba_kernels import Bytes
from pushcen.codec.rates import Histogram, within
from pushcen.codec.schema import Schema
from pushcen.codec.wire import Header
from pushcen.errors import PayloadError


@dataclass(frozen=True)
class Lean(Codec, plain_name="lean"):
    """So many `bits` a number, everything counted: levels of clustered tensors, entropy-coded; all else in 8 bits.

    The levels are as close as fits, and every body is equally long: known before it is encoded, and telling nobody what
    is in it. A small model may take more than `bits`: what is not clustered, and tables, have to be sent.

    With `feedback` a message has the least error, and what it leaves out is added to the sender's next. Without, values
    are larger by what levels take off, so that it leaves out nothing on average.

    >>> Lean(bits=9)
    Traceback (most recent call last):
    pushcen.errors.OptionError: bits = 9: must be a number from 0.05 to 4
    """

    bits: float = 1.0
    feedback: bool = field(default=True, compare=False, repr=False)

    code: ClassVar[int] = 5

    def __post_init__(self) -> None:
        check_number("bits", self.bits, 0.05, 4)
        object.__setattr__(self, "bits", round(self.bits, 3))  # as the header has it

    @property
    def parameter(self) -> int:
        """Thousandths of a bit."""
        return round(1000 * self.bits)

    @classmethod
    def read(cls, header: Header, body: Bytes) -> Self:  # noqa: ARG003
        """Return the codec that a header names."""
        return cls(header.parameter / 1000)

    @property
    def from_start(self) -> bool:
        """Whether what is sent is the difference to the model that all clients start from: always."""
        return True

    def size(self, schema: Schema) -> int:
        """Return the length of the body in bytes."""
        return 4 * math.ceil(max(self.bits * schema.size / 8, Layout.of(schema).least) / 4)

    def write(self, rows: Rows, schema: Schema, body: Bytes) -> None:
        """Encode the rows into `body`: if the levels do not quite fit, again, with fewer bits."""
        layout, held, highest = Layout.of(schema), [], []
        for entry, row in rows:
            highest.append(largest(row, entry.name) if entry.size else 0.0)
            held.append(row.cpu().numpy())
        layout.write_plain(held, highest, body)
        grouped = [[held[at] for at, _ in block] for block in layout.blocks]
        tops = [max(highest[at] for at, _ in block) for block in layout.blocks]
        counted = [Histogram.of(group, top) for group, top in zip(grouped, tops, strict=True)]
        room = self.size(schema) - blocks.END
        free = 8 * (room - layout.begin - blocks.FIXED * len(grouped))
        for share in (0.997, 0.985, 0.96, 0.9, 0.0):
            end = layout.begin
            for group, histogram, choice in zip(
                grouped, counted, within(counted, share * free, blocks.LEVEL), strict=True
            ):
                levels = choice if self.feedback else choice.unbiased(histogram.energy)
                end += blocks.write(group, histogram, levels, body[end : max(end, room)])
            if end <= room:
                break
        body[end : room + blocks.END] = 0

    def check(self, schema: Schema, body: Bytes) -> None:
        """Refuse a body that no encoder makes."""
        layout = Layout.of(schema)
        layout.check_plain(body)
        found, end = layout.read(body)
        for block, places in zip(found, layout.blocks, strict=True):
            check_values(block.values)
            block.check(sum(place.stop - place.start for _, place in places))
        if body[end:].any():
            raise PayloadError("the payload has something behind its last block")

    def add(self, schema: Schema, body: Bytes, weight: Weight, into: Accumulator) -> None:
        """Add `weight` times the decoded model, one pass over the coded levels."""
        layout = Layout.of(schema)
        total = into.row.numpy() if into.row.device.type == "cpu" else np.zeros(schema.size, np.float32)
        layout.add_plain(body, np.float32(weight), total)
        for block, places in zip(layout.read(body)[0], layout.blocks, strict=True):
            block.add(np.float32(weight), [total[place] for _, place in places])
        if into.row.device.type != "cpu":
            into.row.add_(into.row.new_tensor(total))
