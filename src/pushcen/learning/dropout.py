"""Dropout that draws from the client's own stream: PyTorch's draws from one that all threads share."""

import torch
from torch import nn

_DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)


def own_dropout(model: nn.Module, generator: torch.Generator) -> bool:
    """Let the model's dropout layers draw from `generator`; say whether there are any.

    >>> model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    >>> own_dropout(model, torch.Generator().manual_seed(1))
    True
    >>> model[1](torch.ones(6))
    tensor([2., 2., 2., 2., 0., 2.])
    """
    found = False
    for module in model.modules():
        if isinstance(module, _DROPOUTS) and module.p > 0:
            module.forward = _forward(module, generator)  # type: ignore[method-assign]
            found = True
    return found


def _forward(module: nn.Module, generator: torch.Generator):  # type: ignore[no-untyped-def]
    """Zero single values, or with the layers for images whole channels."""
    keep, channels = 1.0 - float(module.p), type(module) is not nn.Dropout  # type: ignore[arg-type]

    def forward(x: torch.Tensor) -> torch.Tensor:
        if not module.training:
            return x
        shape = (*x.shape[:2], *[1] * (x.dim() - 2)) if channels else x.shape
        kept = torch.empty(shape).bernoulli_(keep, generator=generator)
        return x * kept.to(x.device, x.dtype).div_(keep or 1.0)

    return forward
