"""A metric of the user's own, by torchmetrics' interface: `update` and `compute`."""

import copy
from dataclasses import dataclass, field
from typing import Any

import torch

from pushcen.errors import TaskError
from pushcen.learning.metrics.tallies import MOST, Scored, Tally
from pushcen.learning.mistakes import form_of


@dataclass
class ObjectTally(Tally):
    """A metric with `update(outputs, targets)` and `compute()`, as torchmetrics has them."""

    metric: Any
    kept: list[tuple[Any, Any]] | None = field(default_factory=list)
    """All batches, to pool clients; None once they were too many."""
    numbers: int = 0
    client: str = "the client"

    def __post_init__(self) -> None:
        self.metric = copy.deepcopy(self.metric)
        if hasattr(self.metric, "reset"):
            self.metric.reset()

    def update(self, batch: Scored) -> None:
        """Update it with a batch."""
        self.client = batch.client
        self._note(*(_plain(one) for one in (batch.outputs, batch.targets)))

    def merge(self, other: "ObjectTally") -> None:
        """Update it with all batches that the other has kept."""
        if other.kept is None:
            raise RuntimeError("too many outputs to pool")
        for outputs, targets in other.kept:
            self._note(outputs, targets)

    def value(self) -> float:
        """Return what it computes: one number."""
        found = self.metric.compute()
        try:
            number = torch.as_tensor(found)
        except (TypeError, ValueError, RuntimeError):
            number = torch.zeros(0)
        if number.numel() != 1 or number.is_complex():
            what = f"a tensor {form_of(found)}" if isinstance(found, torch.Tensor) else f"{found!r:.40}, {type(found)}"
            name = type(self.metric).__name__
            raise TaskError(
                f"{self.client}: {name}.compute gave {what}: must be one number, over all that it was shown"
            )
        return float(number)

    def _note(self, outputs: Any, targets: Any) -> None:
        self.metric.update(outputs, targets)
        both = [one for one in (outputs, targets) if isinstance(one, torch.Tensor)]
        self.numbers += sum(one.numel() for one in both)
        if self.kept is not None:
            self.kept.append((outputs, targets))
        if self.numbers > MOST or len(both) < 2:
            self.kept = None


def _plain(values: Any) -> Any:
    return values.detach().cpu() if isinstance(values, torch.Tensor) else values
