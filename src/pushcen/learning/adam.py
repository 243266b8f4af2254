"""Adam's step without what PyTorch looks into before each, which takes half as long as the step of a small model."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.optim import Optimizer

Rows = list[list[torch.Tensor]]


def quick(theirs: Callable[[Any], Any], *, decoupled: bool = False) -> Callable[[Any], Any]:
    """Return a step that calls PyTorch's fused kernel at once; or `theirs`, where anything else is to be done.

    That is an optimiser's first step, `amsgrad`, sparse gradients, and what is not on the CPU or not of one type.
    `decoupled` is how weights decay where the optimiser's own options do not say it.

    >>> one, other = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
    >>> for parameter, step in (one, quick(torch.optim.Adam.step)), (other, torch.optim.Adam.step):
    ...     optimiser = torch.optim.Adam([parameter], fused=True)
    ...     parameter.grad = torch.tensor([1.0, -2.0])
    ...     first, second = step(optimiser), step(optimiser)
    >>> torch.equal(one, other)
    True
    """

    def step(self: Optimizer) -> None:
        ready = [_rows(options, self.state) for options in self.param_groups]
        if None in ready:
            theirs(self)
            return
        with torch.no_grad():
            for options, rows in zip(self.param_groups, ready, strict=True):
                if rows and rows[0]:
                    _run(options, *rows, decoupled=options.get("decoupled_weight_decay", decoupled))

    step.is_adam = True  # type: ignore[attr-defined]
    return step


def is_quick(optimiser: Optimizer) -> bool:
    """Return whether an optimiser's step is one that `quick` has made, and nobody has put another in its place.

    >>> is_quick(torch.optim.Adam([torch.zeros(1)]))
    False
    """
    return getattr(type(optimiser).step, "is_adam", False) and "step" not in vars(optimiser)


def _rows(options: Mapping[str, Any], state: Mapping[Any, Any]) -> Rows | None:
    """Return weights, gradients, moments and numbers of steps; None if the kernel cannot take them as they are."""
    if not options["fused"] or options["amsgrad"]:
        return None
    rows: Rows = [[], [], [], [], []]
    weights, gradients, means, squares, steps = rows
    kinds = set[torch.dtype]()
    for weight in options["params"]:
        gradient = weight.grad
        if gradient is None:
            continue
        memory = state.get(weight)
        if not (memory and gradient.is_cpu and gradient.layout is torch.strided):
            return None
        kinds.update((weight.dtype, gradient.dtype))
        weights.append(weight)
        gradients.append(gradient)
        means.append(memory["exp_avg"])
        squares.append(memory["exp_avg_sq"])
        steps.append(memory["step"])
    return rows if len(kinds) <= 1 else None


def _run(
    options: Mapping[str, Any], weights: Any, gradients: Any, means: Any, squares: Any, steps: Any, *, decoupled: bool
) -> None:
    kernel: Any = torch._fused_adamw_ if decoupled else torch._fused_adam_
    torch._foreach_add_(steps, 1)
    first, second = options["betas"]
    kernel(
        weights,
        gradients,
        means,
        squares,
        [],
        steps,
        lr=options["lr"],
        beta1=first,
        beta2=second,
        weight_decay=options["weight_decay"],
        eps=options["eps"],
        amsgrad=False,
        maximize=options["maximize"],
    )
