"""PyTorch's optimisers by name, without its compiler, and checks of their options."""

import functools
import inspect
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, cast

import torch
from torch import nn
from torch.optim import Optimizer

from pushcen.checks import check_number
from pushcen.errors import OptionError
from pushcen.learning.adam import quick

OWN_KEYS = ("lr", "weight_decay", "momentum")
"""What optimisers take that has a key of its own in the section `training`."""
_NOT_OFFERED = {*OWN_KEYS, "fused", "foreach", "capturable", "differentiable", "maximize"}  # ours, or how a step runs
_FUSED = ("adam", "adamw", "sgd")
_REFUSED = {
    "lbfgs": "it computes the loss several times a step, by a closure",
    "sparseadam": "it takes sparse gradients only",
}


def _let_go(self: Optimizer, set_to_none: bool = True) -> None:  # noqa: ARG001
    for group in self.param_groups:
        for parameter in group["params"]:
            parameter.grad = None


@functools.cache
def optimiser_class(name: str) -> type[Optimizer]:
    """Return the class of torch.optim of this name, in any case: it computes the same, and never asks torch.compile.

    That question imports all of the compiler, which takes longer than many a run, and is asked again at every step.

    >>> optimiser_class("rmsprop").__name__
    'RMSprop'
    >>> optimiser_class("lbfgs")
    Traceback (most recent call last):
    pushcen.errors.OptionError: optimiser = 'lbfgs': it computes the loss several times a step, ...; must be one of ...
    """
    kind = _classes().get(name.lower())
    if kind is None:
        why = f"{_REFUSED[name.lower()]}; " if name.lower() in _REFUSED else ""
        raise OptionError(f"optimiser = {name!r}: {why}must be one of {', '.join(_classes())}")
    step: Any = torch.no_grad()(inspect.unwrap(kind.step))
    if kind in (torch.optim.Adam, torch.optim.AdamW):
        step = quick(step, decoupled=kind is torch.optim.AdamW)
    step.hooked = True  # nobody profiles it or hooks into it, and that costs, too
    bare = {"step": step, "add_param_group": inspect.unwrap(Optimizer.add_param_group), "zero_grad": _let_go}
    return cast(type[Optimizer], type(kind.__name__, (kind,), bare))


@functools.cache
def _classes() -> dict[str, type[Optimizer]]:
    """Return the classes that can be had, by their names in small letters."""
    found = {}
    for name, kind in sorted(vars(torch.optim).items(), key=lambda item: item[0].lower()):
        if isinstance(kind, type) and issubclass(kind, Optimizer) and kind is not Optimizer:
            closure = inspect.signature(kind.step).parameters.get("closure")
            if name.lower() not in _REFUSED and (closure is None or closure.default is None):
                found[name.lower()] = kind
    return found


def who_takes(option: str) -> list[str]:
    """Return the optimisers that have an option.

    >>> "rprop" in who_takes("weight_decay")
    False
    """
    return [name for name in _classes() if option in takes(name)]


@functools.cache
def takes(name: str) -> frozenset[str]:
    """Return what an optimiser can be given, and has a key for: `lr`, `weight_decay` and `momentum` among it.

    >>> sorted(takes("rprop"))
    ['etas', 'lr', 'step_sizes']
    """
    named = inspect.signature(optimiser_class(name).__init__).parameters
    return frozenset(named) - {"self", "params"} - _NOT_OFFERED | frozenset(named) & set(OWN_KEYS)


def plain_options(key: str, given: Any) -> dict[str, Any]:
    """Return options as TOML has them: tuples become lists.

    >>> plain_options("options", {"betas": (0.9, 0.95)})
    {'betas': [0.9, 0.95]}
    """
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise OptionError(f"{key} = {given!r}: must be a table of options by name")
    return {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}


def check_options(
    name: str, key: str, given: Mapping[str, Any], settings: Mapping[str, Any], own: Sequence[str]
) -> None:
    """Refuse options that an optimiser does not take, by name, and values with which it makes no step.

    `own` are names that `given` may have, too; `settings` is all that the optimiser would be made with.

    >>> check_options("adam", "options", {"beta": 0.9}, {}, ())
    Traceback (most recent call last):
    pushcen.errors.OptionError: options = {'beta': 0.9}: adam has no beta; it has amsgrad, betas, ...
    """
    may = sorted({*own, *(takes(name) - set(OWN_KEYS))})
    for option in given:
        if option not in may:
            hint = f": training.{option} is its key" if option in takes(name) else f"; it has {', '.join(may)}"
            raise OptionError(f"{key} = {dict(given)!r}: {name} has no {option}{hint}")
    try:
        trial(optimiser_class(name), settings)
    except Exception as error:  # whatever PyTorch has to say
        raise OptionError(f"{key} = {dict(given)!r}: {name} cannot use it: {error}") from error


def trial(kind: type[Optimizer], settings: Mapping[str, Any], shape: Sequence[int] = (2, 2)) -> dict[str, Any]:
    """Make a step with a tensor of zeros; return what the optimiser then remembers of it.

    >>> sorted(trial(torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}))
    ['momentum_buffer']
    """
    parameter = nn.Parameter(torch.zeros(tuple(shape)))
    parameter.grad = torch.zeros(tuple(shape))
    optimiser = kind([parameter], **tupled(settings))
    optimiser.step()
    return {name: value for name, value in optimiser.state.get(parameter, {}).items() if value is not None}


def check_group(name: str, group: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Refuse a group of parameters that has no pattern, or options that are none.

    >>> check_group("adam", {"lr": 0.1}, {})
    Traceback (most recent call last):
    pushcen.errors.OptionError: groups = {'lr': 0.1}: must have match, a pattern of parameters' names: "head.*"
    """
    said = f"groups = {dict(group)!r}"
    if not isinstance(group.get("match"), str) or not group["match"]:
        raise OptionError(f'{said}: must have match, a pattern of parameters\' names: "head.*"')
    own = [key for key in OWN_KEYS if key in takes(name)]
    for key in own:
        if key in group:
            check_number(f"{said}: {key}", group[key], above=key == "lr")
    check_options(name, "groups", group, settings, ["match", *own])


def make_optimiser(
    name: str,
    named: Iterable[tuple[str, nn.Parameter]],
    settings: Mapping[str, Any],
    groups: Sequence[Mapping[str, Any]],
    client: str,
) -> Optimizer:
    """Make the optimiser of a client's parameters; each belongs to the first group whose pattern its name matches.

    `fused` takes one pass over memory where a loop takes ten; it knows no complex.

    >>> groups = [{"match": "bias", "lr": 0.5}]
    >>> made = make_optimiser("sgd", nn.Linear(2, 1).named_parameters(), {"lr": 0.1}, groups, "client 7")
    >>> [(group["lr"], len(group["params"])) for group in made.param_groups]
    [(0.1, 1), (0.5, 1)]
    """
    rest, chosen = dict(named), []
    settings = dict(settings)
    if name in _FUSED:
        settings["fused"] = all(parameter.is_floating_point() for parameter in rest.values())
    names = ", ".join(rest)
    for group in groups:
        mine = [one for one in rest if fnmatchcase(one, group["match"])]
        if not mine:
            raise OptionError(
                f"training.groups = {dict(group)!r}: {client}: matches no parameter that trains and is in no earlier "
                f"group; there are {names:.300}"
            )
        own = {key: value for key, value in group.items() if key != "match"}
        chosen.append({"params": [rest.pop(one) for one in mine], **tupled(own)})
    parameters: list[Any] = list(rest.values())
    if chosen:
        parameters = [{"params": parameters}, *chosen] if rest else chosen
    try:
        return optimiser_class(name)(parameters, **tupled(settings))
    except Exception as error:  # such as Muon's, which takes matrices only
        raise OptionError(f"training.optimiser = {name!r}: {client}: {error}") from error


def tupled(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as PyTorch has them: lists become tuples.

    >>> tupled({"betas": [0.9, 0.95]})
    {'betas': (0.9, 0.95)}
    """
    return {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}
