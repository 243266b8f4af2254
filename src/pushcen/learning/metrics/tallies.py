"""What metrics note of a model's outputs, batch by batch, until they are a number; and how several clients' are pooled.

Here are those of means, losses and errors, which hold a few sums.
"""

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pushcen.learning.metrics.forms import numbers

MOST = 1 << 25
"""How many numbers a tally that keeps outputs may keep."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A batch that was evaluated."""

    outputs: Any
    targets: Any
    loss: float
    """A mean."""
    count: int
    """What it is a mean over, and how many rows outputs and targets have: samples, or tokens."""
    client: str


class Tally:
    """What was noted of some batches."""

    def update(self, batch: Scored) -> None:
        """Note a batch."""
        raise NotImplementedError

    def merge(self, other: Any) -> None:
        """Add what another tally of the same metric has noted."""
        raise NotImplementedError

    def value(self) -> float:
        """Return the metric of all that was noted; not a number where it is undefined."""
        raise NotImplementedError


def pooled(tallies: Sequence[Tally]) -> float:
    """Return a metric over all outputs that several tallies have noted; they stay as they are.

    >>> one, other = LossTally(1.0, 1), LossTally(9.0, 4)
    >>> pooled([one, other]), pooled([])
    (2.0, nan)
    """
    if not tallies:
        return math.nan
    first, *others = tallies
    together = copy.deepcopy(first)
    try:
        for other in others:
            together.merge(other)
    except RuntimeError:  # clients whose outputs are of different forms
        return math.nan
    return together.value()


@dataclass
class MeanTally(Tally):
    """The mean of what `of` gives for each batch: a sum, and over how many."""

    of: Callable[[Scored], tuple[float, int]]
    total: float = 0.0
    count: int = 0

    def update(self, batch: Scored) -> None:
        """Add a batch's sum."""
        total, count = self.of(batch)
        self.total += total
        self.count += count

    def merge(self, other: "MeanTally") -> None:
        """Add the other's sum."""
        self.total += other.total
        self.count += other.count

    def value(self) -> float:
        """Return the mean."""
        return self.total / self.count if self.count else math.nan


@dataclass
class LossTally(Tally):
    """The mean loss over samples or tokens; its exponential is the perplexity."""

    total: float = 0.0
    count: int = 0
    exponential: bool = False

    def update(self, batch: Scored) -> None:
        """Add a batch's loss."""
        self.total += batch.loss * batch.count
        self.count += batch.count

    def merge(self, other: "LossTally") -> None:
        """Add the other's loss."""
        self.total += other.total
        self.count += other.count

    def value(self) -> float:
        """Return the mean, or its exponential."""
        mean = self.total / self.count if self.count else math.nan
        return float(np.exp(min(mean, 1e3))) if self.exponential else mean


@dataclass
class ErrorTally(Tally):
    """Squares of errors: the root of their mean is the RMSE."""

    metric: str = "rmse"
    squares: float = 0.0
    count: int = 0

    def update(self, batch: Scored) -> None:
        """Add a batch's squares."""
        outputs, targets = numbers(batch.outputs, batch.targets, self.metric)
        self.squares += float((outputs - targets).square().sum())
        self.count += targets.numel()

    def merge(self, other: "ErrorTally") -> None:
        """Add the other's squares."""
        self.squares += other.squares
        self.count += other.count

    def value(self) -> float:
        """Return the root of the mean."""
        return math.sqrt(self.squares / self.count) if self.count else math.nan


@dataclass
class VarianceTally(Tally):
    """Squares of errors, and of targets about their mean, output by output: R2, the mean over outputs that vary."""

    count: int = 0
    errors: Any = 0.0
    mean: Any = 0.0
    around: Any = 0.0
    """Squares of targets about their mean."""

    def update(self, batch: Scored) -> None:
        """Add a batch, whose mean is another one."""
        both = numbers(batch.outputs, batch.targets, "r2")
        outputs, targets = (one.flatten(1) if one.dim() > 1 else one[:, None] for one in both)
        mean = targets.mean(0)
        errors, around = (outputs - targets).square().sum(0), (targets - mean).square().sum(0)
        self.merge(VarianceTally(len(targets), errors, mean, around))

    def merge(self, other: "VarianceTally") -> None:
        """Add the other's squares, about the mean of both."""
        if not other.count:
            return
        count, apart = self.count + other.count, other.mean - self.mean
        self.errors = self.errors + other.errors
        self.around = self.around + other.around + apart**2 * (self.count * other.count / count)
        self.mean, self.count = self.mean + apart * (other.count / count), count

    def value(self) -> float:
        """Return R2; targets that are all alike, or a single one, have none."""
        if self.count < 2:
            return math.nan
        varies = self.around > 0
        return float((1 - self.errors[varies] / self.around[varies]).mean())
