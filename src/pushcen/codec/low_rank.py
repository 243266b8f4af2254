"""The codec of FedKD: matrices as the product of two narrow ones, cut to a share of their energy; so sizes vary."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
import torch

from pushcen.checks import check_number
from pushcen.codec.accumulator import Accumulator, Weight
from pushcen.codec.bins import LIMIT
from pushcen.codec.clustering import kernels, largest
from pushcen.codec.codebook import Values
from pushcen.codec.codec import BEYOND, Codec, Rows, check_values
from pushcen.codec.numba_kernels import Bytes
from pushcen.codec.schema import Entry, Schema
from pushcen.codec.wire import Header
from pushcen.errors import PayloadError

WHOLE = 0xFFFF
"""Stands for the rank of a matrix that is sent as it is: two factors would have as many numbers, or more."""
Factors = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class LowRank(Codec, plain_name="low-rank"):
    """Of each clustered tensor, as a matrix with a row for each output, the largest singular values that are needed.

    They are as few as have `energy`, a share of the sum of squares of all. What is sent of them is U S and V, if these
    have fewer numbers than the matrix. All other tensors are sent as they are, in float32. What is cut is the
    difference to a model that all have. The parameter is the number of matrices.

    >>> LowRank(energy=1.5)
    Traceback (most recent call last):
    pushcen.errors.OptionError: energy = 1.5: must be a number, above 0 and at most 1
    """

    energy: float = field(default=0.95, compare=False)
    ranks: tuple[int, ...] = field(default=(), compare=False)
    """Of each matrix; none before there is a message, and then a size is the most that one can have."""
    factors: tuple[Factors, ...] = field(default=(), compare=False, repr=False)
    """Of each matrix that is not whole; only the sender has them."""

    code: ClassVar[int] = 9
    from_start: ClassVar[bool] = True
    varies: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number("energy", self.energy, 0, 1, above=True)

    @property
    def parameter(self) -> int:
        """How many matrices there are."""
        return len(self.ranks)

    @classmethod
    def read(cls, header: Header, body: Bytes) -> Self:
        """Return the codec with the ranks that a body begins with."""
        if body.size < 2 * header.parameter:
            raise PayloadError(f"a payload of {header.parameter} matrices has {body.size} bytes")
        return cls(ranks=tuple(body[: 2 * header.parameter].view("<u2").tolist()))

    def size(self, schema: Schema) -> int:
        """Return the length of the body in bytes; the most that it can be before ranks are known."""
        entries = schema.clustered
        if not self.ranks:
            return _front(len(entries)) + 4 * schema.size
        if len(self.ranks) != len(entries):
            raise PayloadError(f"the payload has {len(self.ranks)} matrices; the schema has {len(entries)}")
        return _front(len(entries)) + 4 * (
            schema.plain_size + sum(_numbers(entry, rank) for entry, rank in zip(entries, self.ranks, strict=True))
        )

    def most(self, schema: Schema) -> int:
        """Return the length of a body with no factors."""
        return LowRank().size(schema)

    def fitted(self, rows: Rows, schema: Schema) -> Self:  # noqa: ARG002
        """Return the codec with the ranks and factors of these rows."""
        cut = [_cut(entry, row, self.energy) for entry, row in rows if entry.clustered and entry.size]
        ranks = tuple(WHOLE if one is None else one[0].shape[1] for one in cut)
        return replace(self, ranks=ranks, factors=tuple(one for one in cut if one is not None))

    def write(self, rows: Rows, schema: Schema, body: Bytes) -> None:
        """Write ranks, and then each tensor, or its factors."""
        at, factors, ranks = _front(len(self.ranks)), iter(self.factors), iter(self.ranks)
        body[:at] = 0
        body[: 2 * len(self.ranks)].view("<u2")[:] = self.ranks
        values, at = body[at : self.size(schema)].view("<f4"), 0
        for entry, row in rows:
            largest(row, entry.name)
            whole = not (entry.clustered and entry.size) or next(ranks) == WHOLE
            for part in (row,) if whole else next(factors):
                values[at : at + part.numel()] = part.reshape(-1).cpu().numpy()
                at += part.numel()

    def check(self, schema: Schema, body: Bytes) -> None:
        """Refuse values that are not finite, products that could be too large, and what comes between."""
        if body[2 * len(self.ranks) : _front(len(self.ranks))].any():
            raise PayloadError("the payload has bytes between its ranks and its numbers that are not zero")
        check_values(body[_front(len(self.ranks)) :].view("<f4"))
        for _, _, one in self._parts(schema, body):
            if isinstance(one, tuple) and one[0].size:
                left, right = (float(np.abs(factor).max()) for factor in one)
                if left * right * one[0].shape[1] > LIMIT:
                    raise PayloadError(BEYOND)

    def add(self, schema: Schema, body: Bytes, weight: Weight, into: Accumulator) -> None:
        """Add `weight` times what the factors make."""
        for start, stop, one in self._parts(schema, body):
            if isinstance(one, tuple):
                left, right = (torch.from_numpy(factor.astype(np.float32)) for factor in one)
                one = (left @ right).reshape(-1).numpy()
            kernels(into.row).add_values(one, weight, np.array([[start, stop]]), into.row)

    def _parts(self, schema: Schema, body: Bytes) -> Iterator[tuple[int, int, Values | tuple[Values, Values]]]:
        """Yield where each tensor is in the row, and its numbers, or its two factors."""
        values, at, ranks = body[_front(len(self.ranks)) :].view("<f4"), 0, iter(self.ranks)
        for entry, place in schema.slices:
            rank = next(ranks) if entry.clustered and entry.size else WHOLE
            if rank == WHOLE:
                yield place.start, place.stop, values[at : at + entry.size].astype(np.float32, copy=False)
                at += entry.size
            else:
                rows, columns = _form(entry)
                left = values[at : at + rows * rank].reshape(rows, rank)
                at += rows * rank
                yield place.start, place.stop, (left, values[at : at + rank * columns].reshape(rank, columns))
                at += rank * columns


def _front(matrices: int) -> int:
    """Return the bytes of all ranks, filled up to a multiple of 4."""
    return -(-2 * matrices // 4) * 4


def _form(entry: Entry) -> tuple[int, int]:
    return entry.shape[0], entry.size // entry.shape[0]


def _numbers(entry: Entry, rank: int) -> int:
    """Return how many numbers of a matrix are sent; refuse a rank that makes them no fewer."""
    if rank == WHOLE:
        return entry.size
    numbers = rank * sum(_form(entry))
    if numbers >= entry.size:
        raise PayloadError(f"the payload has {entry.name} {list(entry.shape)} in factors of rank {rank}: too many")
    return numbers


def _cut(entry: Entry, row: torch.Tensor, energy: float) -> Factors | None:
    """Return the factors of a matrix; None if they are no smaller than it."""
    largest(row, entry.name)
    left, values, right = torch.linalg.svd(row.view(_form(entry)).double().cpu(), full_matrices=False)
    sums = values.square().cumsum(0)
    rank = 0 if not sums[-1] else min(int((sums < energy * sums[-1]).sum()) + 1, len(values))
    if rank * sum(_form(entry)) >= entry.size:
        return None
    return (left[:, :rank] * values[:rank]).float(), right[:rank].float()
