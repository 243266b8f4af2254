"""A weighted sum of models that knows how much weight each coordinate has got."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import nn

from pushcen.codec.clustering import flatten
from pushcen.codec.cut import Cut
from pushcen.codec.reference import Reference
from pushcen.codec.schema import Schema
from pushcen.errors import ModelError, OptionError, PayloadError

Weight = int | float
HEAVIEST = 2.0**60
"""No coordinate gets more: with weights this heavy and values up to 2**60 a float32 sum cannot overflow."""
_ABSURD = 2.0**200  # no weight is heavier
_NONE: Mapping[str, torch.Tensor] = MappingProxyType({})
_OWED = 8  # references that a sum holds on to at most


@dataclass(eq=False)
class Accumulator:
    """The sum of weight times model, coordinate by coordinate, in one row of float32.

    Own weights and payloads go in at any weights (whole quanta of mass, say); the mean comes out. Where fragments came
    in, coordinates have got different weights, and each is divided by its own. Once they would be too heavy, all
    weights in here are divided by the same power of two: their ratios, and so the mean, stay as they are.

    >>> model = nn.Linear(2, 1, bias=False)
    >>> _ = nn.init.constant_(model.weight, 1.0)
    >>> into = Accumulator.zeros(Schema.of(model))
    >>> into.add_model(model, weight=3)
    >>> _ = nn.init.constant_(model.weight, 5.0)
    >>> into.add_model(model, weight=1)
    >>> into.write_mean(model)
    >>> model.weight.tolist(), into.weight
    ([[2.0, 2.0]], 4)
    """

    schema: Schema
    row: torch.Tensor
    """The sum, less what is owed to references: codecs add to it."""
    weight: Weight = 0
    """The weight that every coordinate has got."""
    cut: Cut | None = None
    """How the fragments in here were cut; None if there are none."""
    extra: list[Weight] | None = None
    """The weight that the coordinates of each part have got beside it."""
    shift: int = 0
    """By which power of two all weights in here are divided."""
    _owed: dict[bytes, tuple[Reference, Weight]] = field(default_factory=dict)

    @property
    def total(self) -> torch.Tensor:
        """The sum. What is owed is added, which rounds: who only looks takes that of a `copy`."""
        for reference, weight in self._owed.values():
            self.row.add_(reference.row.to(self.row.device), alpha=float(weight))
        self._owed.clear()
        return self.row

    @total.setter
    def total(self, row: torch.Tensor) -> None:
        self._owed.clear()
        self.row = row

    def owe(self, reference: Reference, weight: Weight) -> None:
        """Add `weight` times a reference, once for all messages that are differences to it, when the sum is read.

        A sum that nobody reads for long, as of a peer that has trained enough, does not hold on to every reference.
        """
        before = self._owed.get(reference.fingerprint, (reference, 0))[1]
        self._owed[reference.fingerprint] = (reference, before + weight)
        if len(self._owed) > _OWED:
            _ = self.total

    @classmethod
    def zeros(cls, schema: Schema, device: torch.device | str = "cpu") -> "Accumulator":
        """Start with nothing."""
        return cls(schema, torch.zeros(schema.size, device=device))

    def copy(self) -> "Accumulator":
        """Return the same sum, of its own."""
        return replace(self, row=self.row.clone(), extra=self.extra and list(self.extra), _owed=dict(self._owed))

    def add_model(self, model: nn.Module, weight: Weight) -> None:
        """Add `weight` times the model's shared tensors, in place of a message from oneself."""
        tensors = self.schema.tensors(model)
        weight = self.make_room(weight)
        for (_, place), tensor in zip(self.schema.slices, tensors, strict=True):
            self.row[place].add_(flatten(tensor).to(self.row.device), alpha=float(weight))
        self.weight += weight

    def add(self, other: "Accumulator") -> None:
        """Add another sum; both may hold fragments, if they were cut alike."""
        if other.cut is not None and self.cut not in (None, other.cut):
            raise PayloadError(f"fragments cut by {other.cut} cannot be added to those cut by {self.cut}")
        if other.shift > self.shift:
            self._divide(other.shift - self.shift)
        elif other.shift < self.shift:
            other = replace(other, row=other.total.clone())
            other._divide(self.shift - other.shift)
        self.row.add_(other.total)
        self.weight += other.weight
        if other.extra is not None:
            self.cut, mine = other.cut, self.extra or [0] * len(other.extra)
            self.extra = [a + b for a, b in zip(mine, other.extra, strict=True)]
        self.make_room(0)

    def make_room(self, weight: Weight) -> Weight:
        """Make room for one more weight, for which all may have to be divided; return what it counts in here.

        >>> into = Accumulator.zeros(Schema.of(nn.Linear(1, 1)))
        >>> into.make_room(2**60), into.make_room(2**62), into.shift
        (1152921504606846976, 5.764607523034235e+17, 3)
        """
        check_weight(weight)
        heaviest = self.weight + max(self.extra or (0,)) + math.ldexp(weight, -self.shift)
        if heaviest > HEAVIEST:
            self._divide(math.frexp(heaviest)[1] - 60)
        return math.ldexp(weight, -self.shift) if self.shift else weight

    def plain(self) -> dict[str, Any]:
        """Return all but `row` and the `owed` rows, as JSON can hold it, for `restored`."""
        cut = None if self.cut is None else [self.cut.parts, self.cut.cut_seed]
        shift = {"shift": self.shift} if self.shift else {}
        owed = {name.hex(): weight for name, (_, weight) in self._owed.items()}
        more = shift | ({"owed": owed} if owed else {})
        return {"weight": self.weight, "cut": cut, "extra": self.extra and list(self.extra), **more}

    @property
    def owed(self) -> dict[str, torch.Tensor]:
        """The references that are still to be added, by fingerprint."""
        return {name.hex(): reference.row for name, (reference, _) in self._owed.items()}

    @classmethod
    def restored(
        cls, schema: Schema, row: torch.Tensor, plain: dict[str, Any], owed: Mapping[str, torch.Tensor] = _NONE
    ) -> "Accumulator":
        """Make the sum that `row`, `plain` and `owed` saw."""
        cut = None if plain["cut"] is None else Cut(*plain["cut"])
        extra = plain["extra"] and list(plain["extra"])
        into = cls(schema, row, plain["weight"], cut, extra, plain.get("shift", 0))
        for name, weight in plain.get("owed", {}).items():
            into.owe(Reference.named(schema, owed[name]), weight)
        return into

    def weights(self) -> torch.Tensor:
        """Return the weight of each coordinate, all in one row."""
        weights = torch.full((self.schema.size,), float(self.weight))
        if self.cut is not None and self.extra is not None:
            for part, extra in enumerate(self.extra):
                ones = np.ones(self.cut.size(part, self.schema.size), np.float32)
                self.cut.scatter_add(ones, part, weights, extra)
        return weights.to(self.row.device)

    def write_mean(self, model: nn.Module) -> None:
        """Set the model's shared tensors to the weighted mean; a coordinate that has got no weight keeps its value."""
        tensors = self.schema.tensors(model)
        if self.cut is None and not self.weight:
            raise ModelError("nothing has been accumulated: there is no mean to write")
        divisor, total = float(self.weight) if self.cut is None else self.weights(), self.total
        with torch.no_grad():
            for (entry, place), tensor in zip(self.schema.slices, tensors, strict=True):
                if not isinstance(divisor, float):
                    own = flatten(tensor).to(total.device)
                    mean = torch.where(divisor[place] > 0, total[place] / divisor[place], own)
                    tensor.copy_(mean.view(entry.shape))
                elif (tensor.dtype, tensor.device) == (total.dtype, total.device):
                    torch.div(total[place].view(entry.shape), divisor, out=tensor)
                else:
                    tensor.copy_((total[place] / divisor).view(entry.shape))

    def _divide(self, power: int) -> None:
        self.total.mul_(2.0**-power)
        self.weight = math.ldexp(self.weight, -power)
        self.extra = self.extra and [math.ldexp(weight, -power) for weight in self.extra]
        self.shift += power


def check_weight(weight: Weight) -> None:
    """Refuse a weight that is negative, not a number, or absurdly large."""
    if not 0 <= weight <= _ABSURD:
        raise OptionError(f"weight = {weight!r}: must be a number between 0 and 2**200")
