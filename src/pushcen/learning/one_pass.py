"""Adam's step with the pull before it and the mask after it in one pass over memory, which is what all three wait for.

The numbers are those of three passes to the last bit: PyTorch's kernel is followed down to where it rounds once for two
operations. Where a try shows that this PyTorch, on this processor, rounds elsewhere, the three passes are taken.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numba import carray, types  # type: ignore[attr-defined]
from numba.extending import intrinsic
from torch.optim import Optimizer

from pushcen.codec.jit import kernel
from pushcen.learning.adam import Ready, count, ready, run
from pushcen.learning.optimiser import optimiser_class
from pushcen.learning.optimiser_state import remembered
from pushcen.learning.pull import Pull, Pulls, as_bytes, as_floats, is_plain

_WIDTH = 16  # so many numbers PyTorch takes at a time, or 8; what is left over it rounds in another order
_BLOCK = 512  # numbers that stay in the innermost cache
_NUMBERS = 7  # of each layer: see `_numbers`
_Place = tuple[int, Ready, int]  # a layer, and where its parameter is: the group, and the number in there


def _multiply_add(_typing, _first, _second, _third):  # type: ignore[no-untyped-def]
    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float32(types.float32, types.float32, types.float32), build


_fma: Any = intrinsic(_multiply_add)  # rounds once


@kernel
def _pass(places, numbers, zeros, pulled):  # type: ignore[no-untyped-def]
    for layer in range(zeros.size):
        size, zero = int(places[layer, 0]), zeros[layer]
        all_weights, all_indices = carray(as_floats(places[layer, 1]), size), carray(as_bytes(places[layer, 2]), size)
        anchors, gradients = carray(as_floats(places[layer, 3]), size), carray(as_floats(places[layer, 4]), size)
        means, squares = carray(as_floats(places[layer, 5]), size), carray(as_floats(places[layer, 6]), size)
        strength, first, second, other, root, eps, rate = numbers[layer]
        for begin in range(0, size, _BLOCK):
            end = min(begin + _BLOCK, size)
            weights, indices, anchor = all_weights[begin:end], all_indices[begin:end], anchors[begin:end]
            gradient, mean, square = gradients[begin:end], means[begin:end], squares[begin:end]
            for i in range(weights.size):
                pulled[i] = gradient[i] + strength * (weights[i] - anchor[i])
            for i in range(weights.size):
                mean[i] = _fma(first, pulled[i] - mean[i], mean[i])
            for i in range(weights.size):
                square[i] = _fma(other * pulled[i], pulled[i], square[i] * second)
            for i in range(weights.size):
                weights[i] = weights[i] + rate * mean[i] / (np.sqrt(square[i]) / root + eps)
            for i in range(weights.size):
                weights[i] = np.float32(0) if indices[i] == zero else weights[i]


def one_pass(pulls: Pulls, optimiser: Optimizer) -> Callable[[], None] | None:
    """Return what makes the next step of an Adam with pull and mask; None if that is nothing for one pass.

    >>> weights = torch.nn.Parameter(torch.ones(64))
    >>> pulls = Pulls([Pull(weights, torch.zeros(64, dtype=torch.uint8), torch.ones(2), zero=1, strength=0.5)])
    >>> one_pass(pulls, torch.optim.SGD([weights])) is None
    True
    """
    groups = ready(optimiser)
    if groups is None or not any(map(_fits, pulls.plain)) or not is_exact():
        return None
    return functools.partial(_step, pulls, groups)


@functools.cache
def is_exact() -> bool:
    """Return whether one pass gives the same bits as three, here and with this PyTorch; it is tried once."""
    draw = torch.Generator().manual_seed(1)
    start, gradient, table = (torch.randn(size, generator=draw) for size in (3 * _WIDTH, 3 * _WIDTH, 32))
    indices = torch.randint(32, (3 * _WIDTH,), generator=draw, dtype=torch.uint8)
    ends = []
    for together in (True, False):
        weights = torch.nn.Parameter(start.clone())
        kind: Any = optimiser_class("adam")
        optimiser = kind([weights], fused=True)
        pulls = Pulls([Pull(weights, indices, table, zero=3, strength=0.1)])
        for _ in range(4):
            weights.grad = gradient.clone()
            groups = ready(optimiser)
            if together and groups is not None:
                _step(pulls, groups)
            else:
                pulls.add_gradients()
                optimiser.step()
                pulls.mask()
        ends.append([weights.detach(), *remembered(optimiser)])
    return all(map(torch.equal, *ends))


def _fits(layer: Pull) -> bool:
    return layer.strength > 0 and layer.weights.numel() % _WIDTH == 0


def _step(pulls: Pulls, groups: Sequence[Ready]) -> None:
    layers = {id(layer.parameter): number for number, layer in enumerate(pulls.plain) if _fits(layer)}
    taken: list[_Place] = []
    with torch.no_grad():
        others = []
        for group in groups:
            if group.rows[0]:
                count(group.rows[4])
            chosen = [_layer(layers, group, at) for at in range(len(group.rows[0]))]
            taken += [(layer, group, at) for at, layer in enumerate(chosen) if layer is not None]
            rest = [at for at, layer in enumerate(chosen) if layer is None]
            others.append([[row[at] for at in rest] for row in group.rows])
        pulls.take(layer for layer, _, _ in taken)
        pulls.add_gradients()
        _run(pulls, taken)
        for group, rows in zip(groups, others, strict=True):
            if rows[0]:
                run(group, rows)
        pulls.mask()
        pulls.take(())


def _layer(layers: Mapping[int, int], group: Ready, at: int) -> int | None:
    """Return the layer of a group's parameter, if its step can be made in one pass."""
    options = group.options
    if options["weight_decay"] or options["maximize"] or options["betas"][0] <= 0.5:  # which rounds in another order
        return None
    layer = layers.get(id(group.rows[0][at]))
    return layer if layer is not None and all(is_plain(row[at]) for row in group.rows[1:4]) else None


def _run(pulls: Pulls, taken: Sequence[_Place]) -> None:
    places, numbers = np.empty((len(taken), 7), np.uintp), np.empty((len(taken), _NUMBERS), np.float32)
    zeros = np.empty(len(taken), np.uint8)
    for to, (number, group, at) in enumerate(taken):
        layer, (_, gradients, means, squares, steps) = pulls.plain[number], group.rows
        places[to, :4] = pulls.places[number]
        places[to, 4:] = gradients[at].data_ptr(), means[at].data_ptr(), squares[at].data_ptr()
        numbers[to], zeros[to] = _numbers(layer.strength, group.options, float(steps[at])), layer.zero
    _pass(places, numbers, zeros, np.empty(_BLOCK, np.float32))


def _numbers(strength: float, options: Mapping[str, Any], steps: float) -> tuple[float, ...]:
    """Return what the step needs beside tensors, computed as PyTorch does it."""
    first, second = options["betas"]
    rate = options["lr"] / (1 - first**steps)
    return strength, 1 - first, second, 1 - second, (1 - second**steps) ** 0.5, options["eps"], -rate
