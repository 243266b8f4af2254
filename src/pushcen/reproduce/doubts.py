"""What could explain PushCen lean away: the same method with simpler messages, for `pushcen reproduce lean`.

Each codec rounds a model in its own way and then codes what came out as `Lean` does, at the same bits a weight.
"""

import math
import zlib
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from pushcen.codec import Lean, Schema, blocks
from pushcen.codec.blocks import Layout
from pushcen.codec.codec import OWN, Rows
from pushcen.codec.numba_kernels import Bytes
from pushcen.learning import CodedUpdate, Update
from pushcen.methods import PushCenLean

_ROOM = 0.96  # of the bits: the rest is for tables of levels, and for what a coder takes more than the entropy


@dataclass(frozen=True)
class Nothing(Lean):
    """Sends no difference at all: what is merged is the reference itself."""

    code = OWN.start

    def write(self, rows: Rows, schema: Schema, body: Bytes) -> None:
        """Encode zeros."""
        super().write([(entry, torch.zeros_like(row)) for entry, row in rows], schema, body)


@dataclass(frozen=True)
class Alone(Lean):
    """Sends models themselves, not differences."""

    code = OWN.start
    from_start = False


@dataclass(frozen=True)
class Stochastic(Lean):
    """Rounds to multiples of one step, up or down by chance, so that every number is right on average."""

    code = OWN.start

    def write(self, rows: Rows, schema: Schema, body: Bytes) -> None:
        """Find the least step that fits by bisection, and encode what is rounded by it."""
        held = [(entry, row.cpu().double()) for entry, row in rows]
        chance = torch.Generator().manual_seed(zlib.crc32(b"".join(row.numpy().tobytes() for _, row in held)))
        draws = {entry.name: torch.rand(row.shape, generator=chance) for entry, row in held}
        low, high = 0.0, max(float(row.abs().max()) for entry, row in held if entry.size) or 1.0
        for _ in range(24):
            step = (low + high) / 2
            taken = sum(_entropy(_levels(row, step, draws[entry.name])) for entry, row in held if entry.clustered)
            low, high = (low, step) if taken <= _room(self, schema) else (step, high)
        rounded = [
            (entry, (_levels(row, high, draws[entry.name]) * high if entry.clustered else row).float())
            for entry, row in held
        ]
        super().write(rounded, schema, body)


@dataclass(frozen=True)
class Ternary(Lean):
    """Sends the largest numbers of each tensor as plus or minus their mean magnitude, all others as zero.

    This is sparse ternary compression (Sattler et al. 2020, https://doi.org/10.1109/TNNLS.2019.2944481).
    """

    code = OWN.start

    def write(self, rows: Rows, schema: Schema, body: Bytes) -> None:
        """Keep as large a share as the bits allow."""
        share = ternary_share(_room(self, schema) / sum(entry.size for entry in schema.clustered))
        super().write([(entry, _ternary(row, share) if entry.clustered else row) for entry, row in rows], schema, body)


def ternary_share(bits: float) -> float:
    """Return which share of numbers may be other than zero, if each takes `bits`: up to 2/3, where bits are most.

    >>> round(ternary_share(0.93), 3), round(ternary_share(2), 3)
    (0.203, 0.667)
    """
    low, high = 0.0, 2 / 3
    for _ in range(40):
        share = (low + high) / 2
        taken = share - share * math.log2(share) - (1 - share) * math.log2(1 - share)
        low, high = (share, high) if taken <= bits else (low, share)
    return high


class _Doubt(PushCenLean):
    codec: ClassVar[type[Lean]]

    def update(self) -> Update:
        """Train plainly; send by the codec of this class."""
        spread = self.spread if self.feedback else 0
        codec = self.codec(self.bits, self.feedback and not spread)
        return CodedUpdate(codec, moves=codec.from_start, spread=spread)


class ReferencesOnly(_Doubt):
    """PushCen lean whose messages say nothing but which reference is to be merged."""

    name, title, codec = "references-only", "References only", Nothing


class NoReference(_Doubt):
    """PushCen lean without references: the few bits are for the model itself."""

    name, title, codec = "no-reference", "No reference", Alone

    @property
    def moves(self) -> int:
        """References never move: there are none."""
        return 0


class StochasticRounding(_Doubt):
    """PushCen lean with rounding by chance; without `feedback` it is unbiased."""

    name, title, codec = "stochastic", "Stochastic rounding", Stochastic


class SparseTernary(_Doubt):
    """PushCen lean with sparse ternary messages."""

    name, title, codec = "ternary", "Sparse ternary", Ternary


def _room(codec: Lean, schema: Schema) -> float:
    """Return how many bits there are for the levels of what is clustered."""
    layout = Layout.of(schema)
    return _ROOM * 8 * (codec.size(schema) - layout.least - blocks.FIXED * len(layout.blocks))


def _levels(row: torch.Tensor, step: float, draw: torch.Tensor) -> torch.Tensor:
    return torch.floor(row / step + draw)


def _entropy(levels: torch.Tensor) -> float:
    """Return how many bits the levels take, each by how often it is there."""
    counts = np.unique(levels.numpy(), return_counts=True)[1]
    return float(-(counts * np.log2(counts / counts.sum())).sum())


def _ternary(row: torch.Tensor, share: float) -> torch.Tensor:
    if not row.numel():
        return row
    magnitudes = row.abs()
    kept = magnitudes >= magnitudes.topk(max(1, int(share * row.numel()))).values[-1]
    return torch.where(kept, row.sign() * magnitudes[kept].mean(), torch.zeros_like(row))
