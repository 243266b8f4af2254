"""The codec of the paper: K centroids a layer, and a short index for each weight."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar, Self, cast

import numpy as np
import torch

from pushcen.codec import numba_kernels
from pushcen.codec.accumulator import Accumulator, Weight
from pushcen.codec.clustering import Profile, check_options, fit, kernels, largest
from pushcen.codec.codebook import Values
from pushcen.codec.codec import BEYOND, Codec, Rows
from pushcen.codec.numba_kernels import Bytes
from pushcen.codec.schema import Entry, Schema
from pushcen.codec.wire import Header
from pushcen.errors import PayloadError


@dataclass(frozen=True)
class Centroids(Codec, plain_name="centroids"):
    """Each clustered layer as a table of centroids and packed indices; everything else as float32.

    `start` is a dictionary to start from, table by name, and `rng` draws the paper's random start where there is none:
    see `cluster`. With `feedback`, what rounding takes off one message is added to the sender's next. None of them is
    part of the message.

    >>> Centroids(clusters=1)
    Traceback (most recent call last):
    pushcen.errors.OptionError: clusters = 1: must be a whole number from 2 to 256
    """

    clusters: int = 32
    profile: Profile = field(default="default", compare=False)
    start: dict[str, torch.Tensor] = field(default_factory=dict, compare=False, repr=False)
    rng: np.random.Generator | None = field(default=None, compare=False, repr=False)
    feedback: bool = field(default=False, compare=False, repr=False)

    code: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_options(self.clusters, self.profile)

    @property
    def parameter(self) -> int:
        """The number of clusters."""
        return self.clusters

    @classmethod
    def read(cls, header: Header, body: Bytes) -> Self:  # noqa: ARG003
        """Return the codec that a header names."""
        return cast(Self, _read(cls, header.parameter))  # type: ignore[arg-type]

    @property
    def bits(self) -> int:
        """Bits of an index: log2 of the number of clusters, rounded up."""
        return (self.clusters - 1).bit_length()

    def size(self, schema: Schema) -> int:
        """Return the length of the body in bytes."""
        tables = len(schema.clustered)
        return 4 * tables * (self.clusters - 1) + 4 * schema.plain_size + tables + schema.packed(self.bits).size

    def with_left(self, rows: Rows, schema: Schema, left: torch.Tensor) -> Iterator[tuple[Entry, torch.Tensor]]:
        """Yield the rows with what was left, within the range of the weights.

        Beyond it, centroids would lie half a cell further out with every message, and whoever trains towards them would
        drive the weights apart. What is not clustered leaves nothing.
        """
        for (_, place), (entry, row) in zip(schema.slices, rows, strict=True):
            if entry.clustered and entry.size:
                low, high = (float(end) for end in row.aminmax())
                yield entry, left[place].add_(row.to(left.device)).clamp_(low, high)
            else:
                left[place] = row
                yield entry, row

    def write(self, rows: Rows, schema: Schema, body: Bytes) -> None:
        """Encode the rows into `body`, which is `size` bytes long and has `numba_kernels.SPARE` more behind it."""
        tables, plain, zeros, packed = self._sections(schema, body)
        lengths = schema.packed(self.bits).lengths
        layer = at = begin = 0
        for entry, row in rows:
            if not entry.size:
                continue
            if not entry.clustered:
                largest(row, entry.name)
                plain[at : at + entry.size] = row.cpu().numpy()
                at += entry.size
                continue
            start = self.start.get(entry.name)
            cells, bins = fit(row, self.clusters, start=start, profile=self.profile, rng=self.rng, name=entry.name)
            zeros[layer] = zero = cells.zero_index
            tables[layer, :zero], tables[layer, zero:] = cells.centroids[:zero], cells.centroids[zero + 1 :]
            kernels(row).assign_packed(row, cells, bins, self.bits, packed[begin:])
            begin += lengths[layer]
            layer += 1

    def check(self, schema: Schema, body: Bytes) -> None:
        """Refuse a body of the right length that no encoder makes."""
        bits, tables = self.bits, len(schema.clustered)
        values = 4 * (tables * (self.clusters - 1) + schema.plain_size)
        zeros, packed = body[values : values + tables], body[values + tables :]
        lengths, _, last, used = schema.packed(bits)
        wrong, which = numba_kernels.check_tables(
            body[:values].view(np.float32), zeros, self.clusters, packed, last, used
        )
        if wrong == "value":
            raise PayloadError(BEYOND)
        if wrong == "zero":
            raise PayloadError(f"the payload's zero index {which} is beyond its {self.clusters} centroids")
        if wrong == "order":
            raise PayloadError("the payload's centroids are not sorted around zero")
        if wrong:
            raise PayloadError(f"the indices of {schema.clustered[which].name} do not end in zero bits")
        if self.clusters == 1 << bits:
            return
        begin = 0
        for entry, length in zip(schema.clustered, lengths, strict=True):
            highest = numba_kernels.highest_index(packed[begin : begin + length], bits, entry.size)
            begin += length
            if highest >= self.clusters:
                raise PayloadError(f"{entry.name} has index {highest}, beyond its {self.clusters} centroids")

    def looks_at(self, schema: Schema) -> int:
        """Return how many bytes of a body `check` looks at: where every index is one of a centroid, not at indices."""
        packed = schema.packed(self.bits).size if self.clusters == 1 << self.bits else 0
        return self.size(schema) - packed

    def add(self, schema: Schema, body: Bytes, weight: Weight, into: Accumulator) -> None:
        """Add `weight` times the decoded model, one pass over the packed indices."""
        tables, plain, zeros, packed = self._sections(schema, body)
        clustered, others = schema.spans
        work = kernels(into.row)
        work.add_packed(packed, self.bits, _with_zero(tables, zeros) * np.float32(weight), clustered, into.row)
        work.add_values(plain, weight, others, into.row)

    def tables(self, schema: Schema, body: Bytes) -> Values:
        """Return the centroids (V in the paper), a row for each clustered layer."""
        tables, _, zeros, _ = self._sections(schema, body)
        return _with_zero(tables, zeros)

    def _sections(self, schema: Schema, body: Bytes) -> tuple[Values, Values, Bytes, Bytes]:
        tables = len(schema.clustered)
        plain = 4 * tables * (self.clusters - 1)
        zeros = plain + 4 * schema.plain_size
        return (
            body[:plain].view(np.float32).reshape(tables, self.clusters - 1),
            body[plain:zeros].view(np.float32),
            body[zeros : zeros + tables],
            body[zeros + tables :],
        )


@lru_cache(maxsize=256)
def _read(kind: type["Centroids"], clusters: int) -> "Centroids":
    """Make the codec that a header names: once, not for every message."""
    return kind(clusters)


def _with_zero(tables: Values, zeros: Bytes) -> Values:
    """Put the zero that is not sent back into each table."""
    full = np.zeros((len(tables), tables.shape[1] + 1), np.float32)
    full[np.arange(full.shape[1]) != zeros[:, None]] = tables.reshape(-1)
    return full
