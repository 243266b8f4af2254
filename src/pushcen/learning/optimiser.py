"""PyTorch's optimisers without its compiler, and their state by the parameters' names, as plain tensors: no pickle."""

import inspect
from typing import Any, TypeVar, cast

import torch
from torch import nn
from torch.optim import Optimizer

T = TypeVar("T", bound=Optimizer)


def _uncompiled(kind: type[T]) -> type[T]:
    """Return an optimiser that computes the same, and never asks torch.compile whether it may.

    That question imports all of the compiler, which takes longer than many a run, and is asked again at every step.
    """
    step: Any = torch.no_grad()(inspect.unwrap(kind.step))
    step.hooked = True  # nobody profiles it or hooks into it, and that costs, too
    bare = {"step": step, "add_param_group": inspect.unwrap(Optimizer.add_param_group), "zero_grad": _let_go}
    return cast(type[T], type(kind.__name__, (kind,), bare))


def _let_go(self: Optimizer, set_to_none: bool = True) -> None:  # noqa: ARG001
    for group in self.param_groups:
        for parameter in group["params"]:
            parameter.grad = None


SGD, Adam, AdamW = _uncompiled(torch.optim.SGD), _uncompiled(torch.optim.Adam), _uncompiled(torch.optim.AdamW)


def save_optimiser(optimiser: torch.optim.Optimizer, model: nn.Module) -> dict[str, torch.Tensor]:
    """Return what the optimiser remembers of each parameter, as `parameter:what`.

    >>> model = nn.Linear(2, 1, bias=False)
    >>> optimiser = torch.optim.Adam(model.parameters())
    >>> model.weight.grad = torch.ones(1, 2)
    >>> optimiser.step()
    >>> sorted(save_optimiser(optimiser, model))
    ['weight:exp_avg', 'weight:exp_avg_sq', 'weight:step']
    """
    return {
        f"{name}:{what}": value
        for name, parameter in model.named_parameters()
        for what, value in optimiser.state.get(parameter, {}).items()
        if isinstance(value, torch.Tensor)
    }


def load_optimiser(optimiser: torch.optim.Optimizer, model: nn.Module, tensors: dict[str, torch.Tensor]) -> None:
    """Set a fresh optimiser's memory to what `save_optimiser` returned.

    >>> model = nn.Linear(2, 1, bias=False)
    >>> optimiser = torch.optim.SGD(model.parameters(), momentum=0.9)
    >>> load_optimiser(optimiser, model, {"weight:momentum_buffer": torch.ones(1, 2)})
    >>> optimiser.state[model.weight]["momentum_buffer"]
    tensor([[1., 1.]])
    """
    parameters = dict(model.named_parameters())
    for key, tensor in tensors.items():
        name, _, what = key.rpartition(":")
        parameter = parameters[name]
        optimiser.state[parameter][what] = tensor.to(parameter.device, copy=True)
