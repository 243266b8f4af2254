"""How clients train between messages: the same for every method."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import nn

from pushcen.errors import OptionError
from pushcen.learning.optimiser import SGD, Adam, AdamW

_OPTIMISERS = ("adam", "adamw", "sgd")


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """Local training in one compute event.

    >>> TrainingOptions(optimiser="adan")
    Traceback (most recent call last):
    pushcen.errors.OptionError: training.optimiser = 'adan': must be one of adam, adamw, sgd
    """

    epochs: int = 1
    """Passes over the client's own data (E in the paper)."""
    batch: int = 32
    optimiser: str = "adam"
    lr: float = 1e-3
    """The learning rate (eta in the paper)."""
    momentum: float = 0.0
    """For sgd."""
    weight_decay: float = 0.0
    device: str = "cpu"
    """cpu, cuda, cuda:1, mps, ..."""
    autocast: str = "off"
    """off, or bfloat16: in what the forward pass may compute."""
    batch_norm: str = "local"
    """local: BatchNorm stays at home, for every method alike; shared: it travels and is averaged."""
    give_up_after: int = 5
    """After so many events in a row that diverged a simulated client no longer trains; 0: never."""

    def __post_init__(self) -> None:
        for name in ("epochs", "batch"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise OptionError(f"training.{name} = {value!r}: must be a whole number from 1")
        if type(self.give_up_after) is not int or self.give_up_after < 0:
            raise OptionError(f"training.give_up_after = {self.give_up_after!r}: must be a whole number from 0")
        for name in ("lr", "momentum", "weight_decay"):
            if not isinstance(getattr(self, name), int | float):
                raise OptionError(f"training.{name} = {getattr(self, name)!r}: must be a number")
        if not 0 < self.lr < float("inf"):
            raise OptionError(f"training.lr = {self.lr!r}: must be a number above 0")
        if not 0 <= self.momentum < 1:
            raise OptionError(f"training.momentum = {self.momentum!r}: must be at least 0 and less than 1")
        if self.momentum and self.optimiser != "sgd":
            raise OptionError(f"training.momentum = {self.momentum!r}: only sgd has it, not {self.optimiser!r}")
        if not 0 <= self.weight_decay < float("inf"):
            raise OptionError(f"training.weight_decay = {self.weight_decay!r}: must be a number from 0")
        _one_of("optimiser", self.optimiser, _OPTIMISERS)
        _one_of("autocast", self.autocast, ("off", "bfloat16"))
        _one_of("batch_norm", self.batch_norm, ("local", "shared"))
        try:
            known = torch.device(self.device).type != "meta"  # where tensors have no values
        except RuntimeError:
            known = False
        if not known:
            raise OptionError(f"training.device = {self.device!r}: must be cpu, cuda, cuda:1, mps, ...")

    def optimise(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """Make the optimiser; `fused` takes one pass over memory where a loop takes ten; it knows no complex."""
        parameters = list(parameters)
        fused = all(parameter.is_floating_point() for parameter in parameters)
        if self.optimiser == "sgd":
            return SGD(parameters, self.lr, self.momentum, weight_decay=self.weight_decay, fused=fused)
        kind = AdamW if self.optimiser == "adamw" else Adam
        return kind(parameters, self.lr, weight_decay=self.weight_decay, fused=fused)

    def steps(self, samples: int) -> int:
        """Count the optimiser's steps in one event; an incomplete last batch is dropped unless it is the only one.

        >>> TrainingOptions(epochs=2).steps(70), TrainingOptions().steps(5)
        (4, 1)
        """
        return self.epochs * max(1, samples // self.batch)


def _one_of(name: str, value: str, choice: tuple[str, ...]) -> None:
    if value not in choice:
        raise OptionError(f"training.{name} = {value!r}: must be one of {', '.join(choice)}")
