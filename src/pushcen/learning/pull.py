"""The two passes that centroid regularisation takes at every step: the pull to the anchor, and the mask.

The regulariser's gradient is known, so it needs no autograd; the anchor is looked up from a layer's table by one byte a
weight, so it is never stored. Both passes run at the speed of memory.
"""

import numpy as np
import torch

from pushcen.codec.jit import kernel


@kernel
def _pull(weights, gradient, indices, table, strength):  # type: ignore[no-untyped-def]
    for i in range(weights.size):
        gradient[i] += strength * (weights[i] - table[indices[i]])


@kernel
def _mask(weights, indices, zero):  # type: ignore[no-untyped-def]
    for i in range(weights.size):
        weights[i] = np.float32(0) if indices[i] == zero else weights[i]


def pull(
    weights: torch.Tensor, gradient: torch.Tensor, indices: torch.Tensor, table: torch.Tensor, strength: float
) -> None:
    """Add the gradient of `strength / 2 * (w - table[index])**2` to `gradient`.

    >>> gradient = torch.zeros(2)
    >>> pull(torch.tensor([1.0, 5.0]), gradient, torch.tensor([0, 1], dtype=torch.uint8), torch.tensor([0.5, 9.0]), 2.0)
    >>> gradient
    tensor([ 1., -8.])
    """
    if _plain(weights) and _plain(gradient):
        full = np.zeros(256, np.float32)
        full[: table.numel()] = table.numpy()
        _pull(weights.view(-1).numpy(), gradient.view(-1).numpy(), indices.view(-1).numpy(), full, np.float32(strength))
    else:
        gradient.add_(weights - table.to(weights.device)[indices.int()], alpha=strength)


def mask(weights: torch.Tensor, indices: torch.Tensor, zero: int) -> None:
    """Set the weights of index `zero` to zero.

    >>> weights = torch.tensor([1.0, 5.0])
    >>> mask(weights, torch.tensor([0, 1], dtype=torch.uint8), zero=0)
    >>> weights
    tensor([0., 5.])
    """
    if _plain(weights):
        _mask(weights.view(-1).numpy(), indices.view(-1).numpy(), np.uint8(zero))
    else:
        weights.masked_fill_(indices == zero, 0.0)


def _plain(tensor: torch.Tensor) -> bool:
    return tensor.device.type == "cpu" and tensor.dtype == torch.float32 and tensor.is_contiguous()
