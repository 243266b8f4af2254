"""How clients train between messages: the same for every method."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import nn

from pushcen.checks import check_choice, check_count, check_number
from pushcen.errors import OptionError
from pushcen.learning.optimiser import SGD, Adam, AdamW

_OPTIMISERS = ("adam", "adamw", "sgd")


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """Local training in one compute event.

    >>> TrainingOptions(optimiser="adan")
    Traceback (most recent call last):
    pushcen.errors.OptionError: optimiser = 'adan': must be one of adam, adamw, sgd
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
        check_count("epochs", self.epochs, 1)
        check_count("batch", self.batch, 1)
        check_count("give_up_after", self.give_up_after)
        check_number("lr", self.lr, above=True)
        check_number("momentum", self.momentum, 0, 1, below=True)
        if self.momentum and self.optimiser != "sgd":
            raise OptionError(f"momentum = {self.momentum!r}: only sgd has it, not {self.optimiser!r}")
        check_number("weight_decay", self.weight_decay)
        check_choice("optimiser", self.optimiser, _OPTIMISERS)
        check_choice("autocast", self.autocast, ("off", "bfloat16"))
        check_choice("batch_norm", self.batch_norm, ("local", "shared"))
        try:
            known = torch.device(self.device).type != "meta"  # where tensors have no values
        except RuntimeError:
            known = False
        if not known:
            raise OptionError(f"device = {self.device!r}: must be cpu, cuda, cuda:1, mps, ...")

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
