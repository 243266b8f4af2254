"""Dropout that draws from the client's own stream: PyTorch's draws from one that all threads share."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

_WHOLE_CHANNELS: dict[Callable[..., torch.Tensor], bool] = {
    nn.Dropout.forward: False,
    nn.Dropout1d.forward: True,
    nn.Dropout2d.forward: True,
    nn.Dropout3d.forward: True,
}


def own_dropout(model: nn.Module, generator: torch.Generator) -> bool:
    """Make the model's dropout layers draw from `generator`; return whether there are any.

    A layer that has a `forward` of its own, in its class or by itself, keeps it.

    >>> model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    >>> own_dropout(model, torch.Generator().manual_seed(1))
    True
    >>> model[1](torch.ones(6))
    tensor([2., 2., 2., 2., 0., 2.])
    """
    found = False
    for module in model.modules():
        channels = _WHOLE_CHANNELS.get(getattr(type(module), "forward", None))  # type: ignore[arg-type]
        ours = isinstance(vars(module).get("forward"), _OwnDraw | None)
        if channels is not None and ours and float(module.p) > 0:  # type: ignore[arg-type]
            module.forward = _OwnDraw(module, generator, channels)
            found = True
    return found


class _OwnDraw:
    """A dropout layer's `forward`: zeroes single values, or with the layers for images whole channels."""

    def __init__(self, module: nn.Module, generator: torch.Generator, channels: bool) -> None:
        self.module, self.generator, self.channels = module, generator, channels

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Return the values that are kept, scaled; in evaluation all of them."""
        if not self.module.training:
            return x
        keep = 1.0 - float(self.module.p)  # type: ignore[arg-type]
        shape = (*x.shape[:2], *[1] * (x.dim() - 2)) if self.channels else x.shape
        kept = torch.empty(shape).bernoulli_(keep, generator=self.generator)
        return x * kept.to(x.device, x.dtype).div_(keep or 1.0)

    def __deepcopy__(self, memo: dict[int, Any]) -> "_OwnDraw":
        """Belong to the copy of the layer, which may be in evaluation while this one trains."""
        return _OwnDraw(copy.deepcopy(self.module, memo), self.generator, self.channels)
