"""The two passes that centroid regularisation takes at every step: the pull to the anchor, and the mask.

The regulariser's gradient is known, so it needs no autograd, and each pass runs at the speed of memory.
"""

import numpy as np
import torch

from pushcen.codec.jit import kernel


@kernel
def _pull(weights, gradient, anchor, strength):  # type: ignore[no-untyped-def]
    for i in range(weights.size):
        gradient[i] += strength * (weights[i] - anchor[i])


@kernel
def _mask(weights, indices, zero):  # type: ignore[no-untyped-def]
    for i in range(weights.size):
        weights[i] = np.float32(0) if indices[i] == zero else weights[i]


@kernel
def _decode(indices, table, out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        out[i] = table[indices[i]]


class Pull:
    """One layer in training: its weights, where they are pulled to, and which are held at zero.

    `strength` is twice lambda: what is added to the gradient is `strength * (weights - anchor)`.

    >>> weights, indices = torch.tensor([1.0, 5.0], requires_grad=True), torch.tensor([0, 1], dtype=torch.uint8)
    >>> weights.grad = torch.ones(2)
    >>> layer = Pull(weights, indices, table=torch.tensor([0.0, 9.0]), zero=0, strength=2.0)
    >>> layer.add_gradient()
    >>> layer.mask()
    >>> weights.grad, weights.data
    (tensor([ 3., -7.]), tensor([0., 5.]))
    """

    def __init__(
        self, parameter: torch.Tensor, indices: torch.Tensor, table: torch.Tensor, zero: int, strength: float
    ) -> None:
        self.parameter, self.weights = parameter, parameter.detach()
        self.indices, self.zero, self.strength = indices.view_as(self.weights), zero, strength
        self._fast = _plain(self.weights)
        if self._fast:  # what the compiled passes take, made once
            self._weight_row, self._index_row = self.weights.view(-1).numpy(), indices.reshape(-1).numpy()
            self._strength, self._zero = np.float32(strength), np.uint8(zero)
        if strength:
            self.anchor = self._decoded(table)

    def add_gradient(self) -> None:
        """Add the regulariser's gradient to the parameter's."""
        gradient = self.parameter.grad
        if gradient is None or not self.strength:
            return
        if self._fast and gradient.is_contiguous():  # of the weights' type, on their device
            _pull(self._weight_row, gradient.numpy().reshape(-1), self._anchor_row, self._strength)
        else:
            gradient.add_((self.weights - self.anchor).to(gradient.dtype), alpha=self.strength)

    def mask(self) -> None:
        """Set the weights of index `zero` to zero."""
        if self._fast:
            _mask(self._weight_row, self._index_row, self._zero)
        else:
            self.weights.masked_fill_(self.indices == self.zero, 0.0)

    def pruned(self) -> int:
        """Count the weights that are held at zero."""
        if self._fast:
            return int(np.count_nonzero(self._index_row == self._zero))
        return int(torch.count_nonzero(self.indices == self.zero))

    def release(self, free: torch.Tensor) -> None:
        """Hold these weights no more, and pull them nowhere."""
        self.indices[free] = self.zero ^ 1  # any other: only the mask still reads it
        if self.strength:
            self.anchor[free] = self.weights[free]

    def _decoded(self, table: torch.Tensor) -> torch.Tensor:
        if not self._fast:
            return table.to(self.weights.dtype)[self.indices.int()]
        anchor = torch.empty_like(self.weights)
        self._anchor_row = anchor.view(-1).numpy()
        full = np.zeros(256, np.float32)  # no index can pass the end
        full[: table.numel()] = table.numpy()
        _decode(self._index_row, full, self._anchor_row)
        return anchor


def _plain(tensor: torch.Tensor) -> bool:
    return tensor.device.type == "cpu" and tensor.dtype == torch.float32 and tensor.is_contiguous()
