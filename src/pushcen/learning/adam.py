"""Adam's step without what PyTorch looks into before each, which takes half as long as the step of a small model."""

import itertools
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, NamedTuple

import torch
from torch.optim import Optimizer

from pushcen.memory import rows_apart

Rows = list[list[torch.Tensor]]


def quick(theirs: Callable[[Any], Any], *, decoupled: bool = False) -> Callable[[Any], Any]:
    """Return a step that calls PyTorch's fused kernel at once; or `theirs`, where anything else is to be done.

    That is `amsgrad`, sparse gradients, and what is not on the CPU or not of one type.
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
        groups = ready(self, decoupled)
        if groups is None:
            theirs(self)
            return
        with torch.no_grad():
            for group in groups:
                if group.rows[0]:
                    count(group.rows[4])
                    run(group, group.rows)

    step.decoupled = decoupled  # type: ignore[attr-defined]
    return step


class Ready(NamedTuple):
    """A group of an optimiser's parameters, as the kernel takes them."""

    options: Mapping[str, Any]
    rows: Rows
    """Weights, gradients, moments and numbers of steps, of all that have a gradient."""
    decoupled: bool
    """Whether weights decay apart from the gradient."""


def ready(optimiser: Optimizer, decoupled: bool | None = None) -> list[Ready] | None:
    """Return an optimiser's groups; None if it is not one whose step `quick` made, or is to make no quick one now.

    >>> ready(torch.optim.SGD([torch.zeros(1)])) is None
    True
    """
    if decoupled is None:
        own = None if "step" in vars(optimiser) else getattr(type(optimiser).step, "decoupled", None)
        if own is None:
            return None
        decoupled = own
    groups = []
    for options in optimiser.param_groups:
        if (rows := _rows(options, optimiser.state)) is None:
            return None
        groups.append(Ready(options, rows, options.get("decoupled_weight_decay", decoupled)))
    return groups


def _rows(options: Mapping[str, Any], state: MutableMapping[Any, Any]) -> Rows | None:
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
        if not (gradient.is_cpu and gradient.layout is torch.strided):
            return None
        memory = state.get(weight) or _begin(options, state, weight)
        if memory is None:
            return None
        kinds.update((weight.dtype, gradient.dtype))
        weights.append(weight)
        gradients.append(gradient)
        means.append(memory["exp_avg"])
        squares.append(memory["exp_avg_sq"])
        steps.append(memory["step"])
    return rows if len(kinds) <= 1 else None


def _begin(options: Mapping[str, Any], state: MutableMapping[Any, Any], weight: torch.Tensor) -> Any:
    """Make what Adam remembers at first, of this weight and all that begin with it, apart from what training frees.

    None if they are not all plain: then PyTorch makes it.
    """
    new = [one for one in options["params"] if one.grad is not None and not state.get(one)]
    if not all(one.is_cpu and one.dtype == torch.float32 and one.is_contiguous() for one in new):
        return None
    rows = rows_apart([shape for one in new for shape in ((), one.shape, one.shape)])
    for at, one in enumerate(new):
        state[one] = dict(zip(("step", "exp_avg", "exp_avg_sq"), rows[3 * at :], strict=False))
    return state[weight]


def run(group: Ready, rows: Rows) -> None:
    """Run the kernel on some rows of a group, whose steps are counted."""
    kernel: Any = torch._fused_adamw_ if group.decoupled else torch._fused_adam_
    options, (weights, gradients, means, squares, steps) = group.options, rows
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


def count(steps: list[torch.Tensor]) -> None:
    """Add one to each number of steps: at once where they lie at equal distances in one block, as they mostly do."""
    places = [one.data_ptr() for one in steps]
    gap = places[1] - places[0] if len(places) > 1 else 0
    block = steps[0].untyped_storage()
    inside = gap > 0 and places[-1] < block.data_ptr() + block.nbytes()
    if inside and all(after - before == gap for before, after in itertools.pairwise(places)):
        torch.as_strided(steps[0], (len(steps),), (gap // steps[0].element_size(),)).add_(1)
    else:
        torch._foreach_add_(steps, 1)
