"""Dropout that draws from the client's own stream: PyTorch's draws from one that all threads share."""

from collections.abc import Callable

import torch
from torch import nn

_WHOLE_CHANNELS: dict[Callable[..., torch.Tensor], bool] = {
    nn.Dropout.forward: False,
    nn.Dropout1d.forward: True,
    nn.Dropout2d.forward: True,
    nn.Dropout3d.forward: True,
}


def own_dropout(model: nn.Module, generator: torch.Generator) -> bool:
    """Let the model's dropout layers draw from `generator`; say whether there are any.

    A subclass that has a `forward` of its own keeps it.

    >>> model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    >>> own_dropout(model, torch.Generator().manual_seed(1))
    True
    >>> model[1](torch.ones(6))
    tensor([2., 2., 2., 2., 0., 2.])
    """
    found = False
    for module in model.modules():
        channels = _WHOLE_CHANNELS.get(getattr(type(module), "forward", None))  # type: ignore[arg-type]
        if channels is not None and float(module.p) > 0:  # type: ignore[arg-type]
            module.forward = _forward(module, generator, channels)
            found = True
    return found


def _forward(module: nn.Module, generator: torch.Generator, channels: bool) -> Callable[[torch.Tensor], torch.Tensor]:
    """Zero single values, or with the layers for images whole channels."""

    def forward(x: torch.Tensor) -> torch.Tensor:
        if not module.training:
            return x
        keep = 1.0 - float(module.p)  # type: ignore[arg-type]
        shape = (*x.shape[:2], *[1] * (x.dim() - 2)) if channels else x.shape
        kept = torch.empty(shape).bernoulli_(keep, generator=generator)
        return x * kept.to(x.device, x.dtype).div_(keep or 1.0)

    return forward
