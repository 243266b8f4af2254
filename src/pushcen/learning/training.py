"""How clients train between messages: the same for every method."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import torch
from torch import nn

from pushcen.checks import check_choice, check_count, check_number
from pushcen.errors import OptionError
from pushcen.learning.optimiser import (
    OWN_KEYS,
    check_group,
    check_options,
    make_optimiser,
    optimiser_class,
    plain_options,
    takes,
    trial,
    who_takes,
)
from pushcen.learning.per_client import PerClientOptions
from pushcen.learning.schedule import ScheduleOptions


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """Local training in one compute event.

    >>> TrainingOptions(optimiser="adan")
    Traceback (most recent call last):
    pushcen.errors.OptionError: optimiser = 'adan': must be one of adadelta, adafactor, adagrad, adam, ...
    """

    epochs: int = 1
    """Passes over the client's own data (E in the paper)."""
    batch: int = 32
    optimiser: str = "adam"
    """A class of torch.optim by its name, in any case: adam, adamw, sgd, rmsprop, ..."""
    lr: float = 1e-3
    """The learning rate (eta in the paper)."""
    momentum: float = 0.0
    """For those optimisers that have it; 0: as usual for them."""
    weight_decay: float = 0.0
    device: str = "cpu"
    """cpu, cuda, cuda:1, mps, ..."""
    autocast: str = "off"
    """off, or bfloat16: in what the forward pass may compute."""
    batch_norm: str = "local"
    """local: BatchNorm stays at home, for every method alike; shared: it travels and is averaged."""
    give_up_after: int = 5
    """After so many events in a row that diverged a simulated client no longer trains; 0: never."""
    clip: float = 0.0
    """The largest norm of the loss's gradient, all parameters together; 0: whatever it is."""
    micro_batch: int = 0
    """A batch is computed in pieces of so many samples, whose gradients are added up: less memory. 0: in one piece."""
    label_smoothing: float = 0.0
    """For the loss that tasks have by default, cross-entropy, in training."""
    groups: tuple[dict[str, Any], ...] = ()
    """Parameters with options of their own: `match`, a pattern of names, and `lr` or others of the optimiser's."""
    options: dict[str, Any] = field(default_factory=dict)
    """Further options of the optimiser: betas, eps, ..."""
    schedule: ScheduleOptions = field(default_factory=ScheduleOptions)
    per_client: PerClientOptions = field(default_factory=PerClientOptions)

    def __post_init__(self) -> None:
        check_count("epochs", self.epochs, 1)
        check_count("batch", self.batch, 1)
        check_count("give_up_after", self.give_up_after)
        check_number("lr", self.lr, above=True)
        check_number("momentum", self.momentum, 0, 1, below=True)
        check_number("weight_decay", self.weight_decay)
        check_choice("autocast", self.autocast, ("off", "bfloat16"))
        check_choice("batch_norm", self.batch_norm, ("local", "shared"))
        check_number("clip", self.clip)
        check_count("micro_batch", self.micro_batch)
        check_number("label_smoothing", self.label_smoothing, 0, 1, below=True)
        self._check_optimiser()
        try:
            known = torch.device(self.device).type != "meta"  # where tensors have no values
        except RuntimeError:
            known = False
        if not known:
            raise OptionError(f"device = {self.device!r}: must be cpu, cuda, cuda:1, mps, ...")

    def _check_optimiser(self) -> None:
        optimiser_class(str(self.optimiser))
        name = self.optimiser.lower()
        for key in ("momentum", "weight_decay"):
            if (value := getattr(self, key)) and key not in takes(name):
                raise OptionError(f"{key} = {value!r}: only {', '.join(who_takes(key))} have it, not {name!r}")
        object.__setattr__(self, "optimiser", name)
        object.__setattr__(self, "options", plain_options("options", self.options))
        object.__setattr__(self, "groups", tuple(plain_options("groups", group) for group in self.groups))
        if self.options:
            check_options(name, "options", self.options, self._settings(), ())
        for group in self.groups:
            check_group(name, group, self._settings(group))

    def _settings(self, group: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return what the optimiser is made with; with a group, as the group has it."""
        taken = takes(self.optimiser)
        own = {key: getattr(self, key) for key in OWN_KEYS if key in taken and (key != "momentum" or self.momentum)}
        return {**own, **self.options, **{key: value for key, value in (group or {}).items() if key in taken}}

    def optimise(self, model: nn.Module, client: str = "the client") -> torch.optim.Optimizer:
        """Make the optimiser of all that trains of a model."""
        named = ((name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad)
        return make_optimiser(self.optimiser, named, self._settings(), self.groups, client)

    @property
    def memory_factor(self) -> int:
        """How many numbers the optimiser keeps of each one that trains.

        >>> TrainingOptions().memory_factor, TrainingOptions(optimiser="sgd").memory_factor
        (2, 0)
        """
        kept = trial(optimiser_class(self.optimiser), self._settings()).values()
        return sum(isinstance(value, torch.Tensor) and value.numel() == 4 for value in kept)

    def steps(self, samples: int) -> int:
        """Count the optimiser's steps in one event; an incomplete last batch is dropped unless it is the only one.

        >>> TrainingOptions(epochs=2).steps(70), TrainingOptions().steps(5)
        (4, 1)
        """
        return self.epochs * max(1, samples // self.batch)

    def of_client(self, client: int, stream: Callable[[str], Random]) -> "TrainingOptions":
        """Return how a client trains, by `per_client`; `stream` returns the client's generator for an option.

        >>> TrainingOptions(per_client=PerClientOptions(epochs=(1, 2, 5))).of_client(2, Random).epochs
        5
        """
        own = self.per_client.of_client(client, stream)
        return replace(self, per_client=PerClientOptions(), **own) if own else self
