"""Weights that are zero because nothing has moved them yet: they must not be held there."""

import torch
from torch import nn

from pushcen.codec import Schema

_NEARLY_ALL = 0.95
_STRAY = 0.001  # random weights may hit zero


class UntrainedZeros:
    """Tells weights that were zero from the beginning (LoRA's B, a new head, a word nobody had) from pruned ones.

    A weight belongs here until it has once left the cell of zero: what has just grown is small, and would be pruned
    again. A layer nearly all of whose weights are zero starts over, whatever it was before.

    >>> model = nn.Linear(3, 1, bias=False)
    >>> _ = nn.init.zeros_(model.weight)
    >>> zeros = UntrainedZeros()
    >>> zeros.note(Schema.of(model), model)
    >>> zeros.among("weight", torch.tensor([[0.0, 0.1, 2.0]]), pruned=torch.tensor([[True, True, False]]))
    tensor([[ True,  True, False]])
    """

    def __init__(self) -> None:
        self.layers: dict[str, torch.Tensor] = {}

    def note(self, schema: Schema, model: nn.Module) -> None:
        """Look at a model that nothing was done to."""
        for entry, tensor in zip(schema.entries, schema.tensors(model), strict=True):
            if entry.clustered and entry.size - int(torch.count_nonzero(tensor)) > _STRAY * entry.size:
                self.layers[entry.name] = tensor.detach() == 0

    def may_be_in(self, name: str, pruned: int, size: int) -> bool:
        """Return whether it is worth asking `among`, for a layer of which so many weights are in the cell of zero."""
        return name in self.layers or nearly_all(pruned, size)

    def among(self, name: str, weights: torch.Tensor, pruned: torch.Tensor) -> torch.Tensor:
        """Find the weights, among those in the cell of zero, that are there for want of training."""
        zeros = weights == 0
        found = self.layers.pop(name, torch.zeros_like(zeros)).to(weights.device) & pruned
        if nearly_all(int(torch.count_nonzero(zeros)), weights.numel()):
            found |= zeros
        if found.any():
            self.layers[name] = found
        return found


def nearly_all(some: int, size: int) -> bool:
    """Return whether so many of a layer's weights are nearly all of them.

    >>> nearly_all(47, 48), nearly_all(40, 48)
    (True, False)
    """
    return some >= _NEARLY_ALL * size
