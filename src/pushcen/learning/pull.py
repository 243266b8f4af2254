"""The two passes that centroid regularisation takes at every step: the pull to the anchor, and the mask.

The regulariser's gradient is known, so it needs no autograd, and each pass runs at the speed of memory. It takes all
layers in one call: each call lets another thread have the interpreter, for which this one may have to wait after it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numba import carray, types  # type: ignore[attr-defined]
from numba.extending import intrinsic

from pushcen.codec.jit import kernel


def _as_pointer(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))


def _float_pointer(_typing, address):  # type: ignore[no-untyped-def]
    return types.CPointer(types.float32)(address), _as_pointer  # type: ignore[no-untyped-call]


def _byte_pointer(_typing, address):  # type: ignore[no-untyped-def]
    return types.CPointer(types.uint8)(address), _as_pointer  # type: ignore[no-untyped-call]


as_floats: Any = intrinsic(_float_pointer)
"""In a kernel, makes an address what `carray` takes, of numbers in float32."""
as_bytes: Any = intrinsic(_byte_pointer)
"""The same of bytes."""


@kernel
def _pull(places, gradients, strengths):  # type: ignore[no-untyped-def]
    for layer in range(gradients.size):
        if gradients[layer]:
            size, strength = int(places[layer, 0]), strengths[layer]
            weights, anchor = carray(as_floats(places[layer, 1]), size), carray(as_floats(places[layer, 3]), size)
            gradient = carray(as_floats(gradients[layer]), size)
            for i in range(size):
                gradient[i] += strength * (weights[i] - anchor[i])


@kernel
def _mask(places, zeros):  # type: ignore[no-untyped-def]
    for layer in range(zeros.size):
        size, zero = int(places[layer, 0]), zeros[layer]
        weights, indices = carray(as_floats(places[layer, 1]), size), carray(as_bytes(places[layer, 2]), size)
        for i in range(size):
            weights[i] = np.float32(0) if indices[i] == zero else weights[i]


@kernel
def _decode(indices, table, out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        out[i] = table[indices[i]]


class Pull:
    """One layer in training: its weights, where they are pulled to, and which are held at zero.

    `strength` is twice lambda: what is added to the gradient is `strength * (weights - anchor)`.
    """

    def __init__(
        self, parameter: torch.Tensor, indices: torch.Tensor, table: torch.Tensor, zero: int, strength: float
    ) -> None:
        self.parameter, self.weights = parameter, parameter.detach()
        self.indices, self.zero, self.strength = indices.view_as(self.weights), zero, strength
        self.plain = is_plain(self.weights) and self.indices.is_contiguous()
        """Whether the compiled passes take it."""
        self.anchor = self._decoded(table) if strength else self.weights

    def add_gradient(self) -> None:
        """Add the regulariser's gradient to the parameter's, by torch's operations."""
        gradient = self.parameter.grad
        if gradient is not None and self.strength:
            if gradient.is_sparse:  # the pull is on all weights
                self.parameter.grad = gradient = gradient.to_dense()
            gradient.add_((self.weights - self.anchor).to(gradient.dtype), alpha=self.strength)

    def mask(self) -> None:
        """Set the weights of index `zero` to zero, by torch's operations."""
        self.weights.masked_fill_(self.indices == self.zero, 0.0)

    def holds(self, parameter: torch.Tensor) -> bool:
        """Return whether the compiled passes take it, and its weights are still the parameter's."""
        return self.plain and self.weights.data_ptr() == parameter.data_ptr()

    def pruned(self) -> int:
        """Count the weights that are held at zero."""
        if self.plain:
            return int(np.count_nonzero(self.indices.numpy() == np.uint8(self.zero)))
        return int(torch.count_nonzero(self.indices == self.zero))

    def release(self, free: torch.Tensor) -> None:
        """Hold these weights no more, and pull them nowhere."""
        self.indices[free] = self.zero ^ 1  # any other: only the mask still reads it
        if self.strength:
            self.anchor[free] = self.weights[free]

    def _decoded(self, table: torch.Tensor) -> torch.Tensor:
        if not self.plain:
            return table.to(self.weights.dtype)[self.indices.int()]
        anchor = torch.empty_like(self.weights)
        full = np.zeros(256, np.float32)  # no index can pass the end
        full[: table.numel()] = table.numpy()
        _decode(self.indices.view(-1).numpy(), full, anchor.view(-1).numpy())
        return anchor


class Pulls:
    """All layers in training.

    >>> weights, indices = torch.tensor([1.0, 5.0], requires_grad=True), torch.tensor([0, 1], dtype=torch.uint8)
    >>> weights.grad = torch.ones(2)
    >>> layers = Pulls([Pull(weights, indices, table=torch.tensor([0.0, 9.0]), zero=0, strength=2.0)])
    >>> layers.add_gradients()
    >>> layers.mask()
    >>> weights.grad, weights.data
    (tensor([ 3., -7.]), tensor([0., 5.]))
    """

    def __init__(self, layers: Sequence[Pull] = ()) -> None:
        self.layers = layers
        self._plain = [layer for layer in layers if layer.plain]
        self._others = [layer for layer in layers if not layer.plain]
        tensors = [(layer.weights, layer.indices, layer.anchor) for layer in self._plain]
        places = [[three[0].numel(), *(one.data_ptr() for one in three)] for three in tensors]
        self._places = np.array(places, np.uintp).reshape(-1, 4)  # the layers keep what is there
        self._gradients = np.zeros(len(self._plain), np.uintp)
        self._strengths = np.array([layer.strength for layer in self._plain], np.float32)
        self._zeros = np.array([layer.zero for layer in self._plain], np.uint8)

    def add_gradients(self) -> None:
        """Add the regulariser's gradient to that of each parameter that has one."""
        slow = list(self._others)
        for at, layer in enumerate(self._plain):
            gradient = layer.parameter.grad if layer.strength else None
            self._gradients[at] = 0
            if gradient is not None and is_plain(gradient):
                self._gradients[at] = gradient.data_ptr()
            elif gradient is not None:
                slow.append(layer)
        _pull(self._places, self._gradients, self._strengths)
        for layer in slow:
            layer.add_gradient()

    def mask(self) -> None:
        """Set the weights that are held at zero to zero."""
        _mask(self._places, self._zeros)
        for layer in self._others:
            layer.mask()


def is_plain(tensor: torch.Tensor) -> bool:
    """Return whether the compiled passes can take a tensor as it lies in memory.

    >>> is_plain(torch.zeros(2, 3)), is_plain(torch.zeros(2, 3).T)
    (True, False)
    """
    return tensor.is_cpu and tensor.dtype is torch.float32 and tensor.is_contiguous()
