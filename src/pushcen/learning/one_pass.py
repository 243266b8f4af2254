"""Adam's step with the pull before it and the mask after it in one pass over memory, which is what all three wait for.

The numbers are those of three passes to the last bit: PyTorch's kernel is followed down to where it rounds once for two
operations. Where a try shows that this PyTorch, on this processor, rounds elsewhere, the three passes are taken.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numba import carray, types  # type: ignore[attr-defined]
from numba.extending import intrinsic
from torch.optim import Optimizer

from pushcen.codec.jit import kernel
from pushcen.learning.adam import is_quick
from pushcen.learning.optimiser import optimiser_class
from pushcen.learning.optimiser_state import remembered
from pushcen.learning.pull import Pull, Pulls, as_bytes, as_floats, is_plain

_WIDTH = 8  # so many numbers PyTorch takes at a time; what is left over it rounds in another order
_BLOCK = 512  # numbers that stay in the innermost cache


def _multiply_add(_typing, _first, _second, _third):  # type: ignore[no-untyped-def]
    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float32(types.float32, types.float32, types.float32), build


_fma: Any = intrinsic(_multiply_add)  # rounds once


@kernel
def _pass(places, zeros, numbers, pulled):  # type: ignore[no-untyped-def]
    for layer in range(zeros.size):
        size, zero, moves, masks = int(places[layer, 0]), zeros[layer], places[layer, 7] != 0, places[layer, 1] != 0
        all_indices, anchors = carray(as_bytes(places[layer, 1]), size), carray(as_floats(places[layer, 2]), size)
        all_weights, means = carray(as_floats(places[layer, 3]), size), carray(as_floats(places[layer, 4]), size)
        squares, steps = carray(as_floats(places[layer, 5]), size), carray(as_floats(places[layer, 6]), 1)
        gradients = carray(as_floats(places[layer, 7]), size)
        lr, beta, beta2 = numbers[layer, 0], numbers[layer, 1], numbers[layer, 2]
        eps, strength = np.float32(numbers[layer, 3]), np.float32(numbers[layer, 4])
        count = 1.0
        if moves:
            steps[0] += np.float32(1)
            count = np.float64(steps[0])
        first, second, other = np.float32(1 - beta), np.float32(beta2), np.float32(1 - beta2)
        root, rate = np.float32(np.sqrt(1 - beta2**count)), np.float32(-(lr / (1 - beta**count)))
        for begin in range(0, size, _BLOCK):
            end = min(begin + _BLOCK, size)
            weights, indices, anchor = all_weights[begin:end], all_indices[begin:end], anchors[begin:end]
            gradient, mean, square = gradients[begin:end], means[begin:end], squares[begin:end]
            whole = weights.size - weights.size % _WIDTH
            if moves:
                if strength:
                    for i in range(weights.size):
                        pulled[i] = gradient[i] + strength * (weights[i] - anchor[i])
                else:
                    pulled[: weights.size] = gradient
                for i in range(weights.size):
                    mean[i] = _fma(first, pulled[i] - mean[i], mean[i])
                for i in range(whole):
                    square[i] = _fma(other * pulled[i], pulled[i], square[i] * second)
                for i in range(whole, weights.size):
                    square[i] = _fma(square[i], second, other * pulled[i] * pulled[i])
                for i in range(weights.size):
                    weights[i] = weights[i] + rate * mean[i] / (np.sqrt(square[i]) / root + eps)
            if masks:
                for i in range(weights.size):
                    weights[i] = np.float32(0) if indices[i] == zero else weights[i]


class OnePass:
    """The steps of one event. What lies where is looked up once, and again if weights have been moved since.

    What Adam remembers is not to be moved in an event, but for its first step, which is the optimiser's own.

    >>> weights = torch.nn.Parameter(torch.ones(64))
    >>> pulls = Pulls([Pull(weights, torch.zeros(64, dtype=torch.uint8), torch.ones(2), zero=1, strength=0.5)])
    >>> weights.grad = torch.ones(64)
    >>> OnePass(pulls, optimiser_class("adam")([weights], fused=True)).step()  # PyTorch makes what Adam remembers
    False
    """

    def __init__(self, pulls: Pulls, optimiser: Optimizer, *, mask: bool = True) -> None:
        self._pulls, self._optimiser, self._mask = pulls, optimiser, mask
        self._parameters: list[torch.Tensor] = []
        self._idle: list[torch.Tensor] = []  # those of which Adam remembers nothing, as they have had no gradient
        self._where: list[int] = []  # their weights lay when all was looked up
        self._held: list[Any] = []  # all memory that is written to, so that it stays what it is
        self._room = np.empty(_BLOCK, np.float32)

    def step(self) -> bool:
        """Make a step with pull and mask; return whether it was made, or is nothing for one pass."""
        made = self._is_ready()
        if made:
            _pass(self._places, self._zeros, self._numbers, self._room)
        else:  # whoever makes this step may move things
            self._where = []
        return made

    def _is_ready(self) -> bool:
        """Return whether the kernel can make the next step, once it has been told of all that changes between steps."""
        if (not self._where or self._has_moved()) and not self._look_up():
            return False
        gradients = [one.grad for one in self._parameters]
        pairs = zip(gradients, self._sizes, strict=True)
        if not all(one is None or (is_plain(one) and one.numel() == size) for one, size in pairs):
            return False
        at = 0
        for options in self._optimiser.param_groups:
            if _rounds_otherwise(options):
                return False
            begin, at = at, at + len(options["params"])
            self._numbers[begin:at, :4] = options["lr"], *options["betas"], options["eps"]
        if at != len(gradients):  # somebody has added some
            return False
        self._places[:, 7] = [0 if one is None else one.data_ptr() for one in gradients]
        return True

    def _has_moved(self) -> bool:
        moved = [one.data_ptr() for one in self._parameters] != self._where
        return moved or any(one.grad is not None for one in self._idle)

    def _look_up(self) -> bool:
        """Find all that a step works on; return whether the kernel can take it."""
        layers = {id(layer.parameter): layer for layer in self._pulls.layers}
        parameters = [one for options in self._optimiser.param_groups for one in options["params"]]
        idle, held, places, zeros, strengths = [], [], [], [], []
        for one in parameters:
            memory, layer = self._optimiser.state.get(one), layers.pop(id(one), None)
            if memory:
                new = [one, memory["exp_avg"], memory["exp_avg_sq"], memory["step"]]
            elif one.grad is None:
                new = [one]
                idle.append(one)
            else:  # PyTorch makes what it remembers
                return False
            fits = all(is_plain(part) and part.numel() == one.numel() > 0 for part in new[:3]) and is_plain(new[-1])
            if not fits or not (layer is None or layer.holds(one)):
                return False
            held += [part.untyped_storage() for part in new]
            still = [0, 0] if layer is None else [layer.indices.data_ptr() * self._mask, layer.anchor.data_ptr()]
            places.append([one.numel(), *still, *(part.data_ptr() for part in new), *[0] * (5 - len(new))])
            zeros.append(0 if layer is None else layer.zero)
            strengths.append(0.0 if layer is None else layer.strength)
        if layers:  # of what the optimiser does not train
            return False
        self._parameters, self._idle, self._held = parameters, idle, held
        self._sizes = [one.numel() for one in parameters]
        self._places, self._zeros = np.array(places, np.uintp), np.array(zeros, np.uint8)
        self._numbers = np.array([[0.0] * 4 + [strength] for strength in strengths])
        self._where = [one.data_ptr() for one in parameters]
        return True


def one_pass(pulls: Pulls, optimiser: Optimizer, *, mask: bool) -> Callable[[], bool] | None:
    """Return `OnePass.step` for an event; None if this is no Adam of `optimiser_class`, or would not be exact here.

    >>> one_pass(Pulls(), torch.optim.SGD([torch.zeros(1)]), mask=True) is None
    True
    """
    return OnePass(pulls, optimiser, mask=mask).step if is_quick(optimiser) and is_exact() else None


def _rounds_otherwise(options: Mapping[str, Any]) -> bool:
    """Return whether PyTorch makes a step with such options by another kernel, or in another order."""
    other = options["weight_decay"] or options["maximize"] or options["amsgrad"] or not options["fused"]
    return bool(other) or options["betas"][0] <= 0.5


@functools.cache
def is_exact() -> bool:
    """Return whether one pass gives the same bits as three, here and with this PyTorch; it is tried once."""
    draw = torch.Generator().manual_seed(1)
    size = 6 * _WIDTH + 5
    start, gradient, table = (torch.randn(count, generator=draw) for count in (size, size, 32))
    indices = torch.randint(32, (size,), generator=draw, dtype=torch.uint8)
    ends = []
    for together in (True, False):
        weights = torch.nn.Parameter(start.clone())
        kind: Any = optimiser_class("adam")
        optimiser = kind([weights], fused=True)
        pulls = Pulls([Pull(weights, indices, table, zero=3, strength=0.1)])
        steps = OnePass(pulls, optimiser)
        for _ in range(4):
            weights.grad = gradient.clone()
            if not (together and steps.step()):
                pulls.add_gradients()
                optimiser.step()
                pulls.mask()
        ends.append([weights.detach(), *remembered(optimiser)])
    return all(map(torch.equal, *ends))
