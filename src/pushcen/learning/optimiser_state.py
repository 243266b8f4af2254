"""What an optimiser remembers, by the parameters' names, as plain tensors: no pickle."""

import inspect
import warnings
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from pushcen.errors import TaskError
from pushcen.learning.optimiser import trial

_NUMBER = "="  # behind the name of what is a number of Python, and no tensor
_TYPES = {bool: torch.bool, int: torch.int64, float: torch.float64}


def remembered(optimiser: Optimizer) -> list[torch.Tensor]:
    """Return the tensors that an optimiser remembers."""
    memories = optimiser.state.values()
    return [value for memory in memories for value in memory.values() if isinstance(value, torch.Tensor)]


def save_optimiser(optimiser: Optimizer, model: nn.Module) -> dict[str, torch.Tensor]:
    """Return what the optimiser remembers of each parameter, as `parameter:what`; numbers too, as `parameter:what=`.

    >>> model = nn.Linear(2, 1, bias=False)
    >>> optimiser = torch.optim.Adam(model.parameters())
    >>> model.weight.grad = torch.ones(1, 2)
    >>> optimiser.step()
    >>> sorted(save_optimiser(optimiser, model))
    ['weight:exp_avg', 'weight:exp_avg_sq', 'weight:step']
    """
    found = {}
    for name, parameter in model.named_parameters():
        for what, value in optimiser.state.get(parameter, {}).items():
            if isinstance(value, torch.Tensor):
                found[f"{name}:{what}"] = value
            elif type(value) in _TYPES:
                found[f"{name}:{what}{_NUMBER}"] = torch.tensor(value, dtype=_TYPES[type(value)])
            elif value is not None:
                raise TaskError(
                    f"{type(optimiser).__name__} keeps {what} of {name} as {type(value).__name__}, which cannot be "
                    "saved: must be a tensor or a number"
                )
    return found


def load_optimiser(optimiser: Optimizer, model: nn.Module, tensors: dict[str, torch.Tensor]) -> None:
    """Set a fresh optimiser's memory to what `save_optimiser` returned; leave it, with a warning, if it is another's.

    >>> model = nn.Linear(2, 1, bias=False)
    >>> optimiser = torch.optim.SGD(model.parameters(), momentum=0.9)
    >>> load_optimiser(optimiser, model, {"weight:momentum_buffer": torch.ones(1, 2)})
    >>> optimiser.state[model.weight]["momentum_buffer"]
    tensor([[1., 1.]])
    """
    parameters = dict(model.named_parameters())
    found: dict[nn.Parameter, dict[str, Any]] = defaultdict(dict)
    for key, tensor in tensors.items():
        name, _, what = key.rpartition(":")
        parameter = parameters[name]
        if what.endswith(_NUMBER):
            found[parameter][what.removesuffix(_NUMBER)] = tensor.item()
        else:
            found[parameter][what] = tensor.to(_device(optimiser, parameter, what), copy=True)
    if strange := _strange(optimiser, found):
        warnings.warn(
            f"what was saved is another optimiser's ({', '.join(strange)}): {type(optimiser).__name__} begins afresh",
            stacklevel=2,
        )
        return
    for parameter, memory in found.items():
        optimiser.state[parameter] = memory


def _strange(optimiser: Optimizer, found: Mapping[nn.Parameter, dict[str, Any]]) -> list[str]:
    """Return what is remembered, by name, of the first parameter of which this optimiser remembers something else."""
    takes = inspect.signature(type(optimiser)).parameters
    for group in optimiser.param_groups:
        settings, kept = {name: group[name] for name in optimiser.defaults if name in takes}, {}
        for parameter in group["params"]:
            if parameter not in found:
                continue
            dim = parameter.dim()
            if dim not in kept:
                kept[dim] = trial(type(optimiser), settings, (2,) * dim).keys()
            if found[parameter].keys() != kept[dim]:
                return list(found[parameter])
    return []


def _device(optimiser: Optimizer, parameter: nn.Parameter, what: str) -> torch.device:
    """Return where a tensor of an optimiser's memory lives: its count of steps on the CPU, unless it is fused."""
    on_cpu = what == "step" and not optimiser.defaults.get("fused")
    return torch.device("cpu") if on_cpu else parameter.device
