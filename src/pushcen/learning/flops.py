"""How many floating-point operations training takes, by torch's own counter."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

_known: dict[Any, float] = {}  # a property of the model's structure and the batch, so all clients share it


class StepCost:
    """Counts the first step of each kind of model and shape of batch, while it runs; later ones cost the same.

    >>> model = torch.nn.Linear(10, 2)
    >>> step = lambda: model(torch.zeros(4, 10)).sum().backward()
    >>> cost = StepCost(model)
    >>> _ = cost.run(4, step), cost.run(4, step)
    >>> cost.total                                       # 2 x 4 x 10 x 2 each, forward and for the weights
    640.0
    """

    def __init__(self, model: nn.Module) -> None:
        self.total = 0.0
        self._model = (repr(model), *((p.shape, p.requires_grad) for p in model.parameters()))

    def run(self, shape: Any, step: Callable[[], torch.Tensor]) -> torch.Tensor:
        """Run a step on a batch of this shape, and add its cost."""
        known = _known.get((self._model, shape))
        if known is None:
            with FlopCounterMode(display=False) as counter:
                result = step()
            known = _known[self._model, shape] = float(counter.get_total_flops())
        else:
            result = step()
        self.total += known
        return result
